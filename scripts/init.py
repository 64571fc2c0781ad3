"""Writes a first problem file from a table: python scripts/init.py data=table.csv out=problem.yaml."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("init"))
