"""Prints how far a campaign is: python scripts/status.py problem.yaml."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("status"))
