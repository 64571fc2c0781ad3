"""Prepares data from public files: python scripts/prepare.py nhanes source=FOLDER out=FOLDER."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("prepare"))
