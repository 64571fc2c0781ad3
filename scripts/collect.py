"""Merges the shards of a sweep: python scripts/collect.py runs/sepsis/FOLDER."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("collect"))
