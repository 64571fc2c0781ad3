"""Proposes the next experiments of a campaign: python scripts/suggest.py problem.yaml."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("suggest"))
