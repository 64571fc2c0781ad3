"""Serves the page of a run: python scripts/explore.py runs/own_problem/FOLDER."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("explore"))
