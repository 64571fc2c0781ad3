"""Checks a problem file: python scripts/check.py problem=problem.yaml."""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("check"))
