"""Checks a problem file: python scripts/check.py problem=problem.yaml."""

import sys

from rehearsal_torch.cli.verbs.check import main

if __name__ == "__main__":
    sys.exit(main())
