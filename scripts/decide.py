"""Decides for all situations of a split: python scripts/decide.py +experiment=sepsis checkpoint=FOLDER."""

import sys

from rehearsal_torch.cli.decide import decide
from rehearsal_torch.cli.main import main

if __name__ == "__main__":
    sys.exit(main(decide))
