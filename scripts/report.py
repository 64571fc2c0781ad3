"""Writes the pages of run folders: python scripts/report.py runs/auf/FOLDER."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("report"))
