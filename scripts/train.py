"""Trains a surrogate and decides for some cases: python scripts/train.py +experiment=sepsis."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("train"))
