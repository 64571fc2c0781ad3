"""Trains a surrogate and shows what it decides: python scripts/train.py +experiment=sepsis."""

import sys

from rehearsal_torch.commands.command_line import main
from rehearsal_torch.commands.train import train

if __name__ == "__main__":
    sys.exit(main(train))
