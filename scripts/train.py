"""Trains a surrogate and decides for some cases: python scripts/train.py +experiment=sepsis."""

import sys

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.tasks import train

if __name__ == "__main__":
    sys.exit(main(train))
