"""Decides for all cases of a split: python scripts/decide.py +experiment=sepsis checkpoint=FOLDER."""

import sys

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.tasks import decide

if __name__ == "__main__":
    sys.exit(main(decide))
