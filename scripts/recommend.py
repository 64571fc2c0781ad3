"""Prints the settings to keep of a campaign: python scripts/recommend.py problem.yaml."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("recommend"))
