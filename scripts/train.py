"""Trains a surrogate and shows what it decides: python scripts/train.py +experiment=sepsis."""

import sys

from rehearsal_torch.cli.decide import train
from rehearsal_torch.cli.main import main

if __name__ == "__main__":
    sys.exit(main(train))
