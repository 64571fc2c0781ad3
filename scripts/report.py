"""Writes the pages of run folders: python scripts/report.py runs/auf/FOLDER."""

import sys

from rehearsal_torch.cli.verbs.report import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
