"""Decides for all cases of a split: python scripts/decide.py +experiment=sepsis checkpoint=FOLDER."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("decide"))
