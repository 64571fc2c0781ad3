"""Records results of a campaign: python scripts/tell.py problem.yaml."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("tell"))
