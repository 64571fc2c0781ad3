"""Trains a surrogate and shows what it decides: python scripts/train.py +experiment=sepsis."""

import sys

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.verbs.train import train

if __name__ == "__main__":
    sys.exit(main(train))
