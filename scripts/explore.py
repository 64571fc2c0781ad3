"""Serves the page of a run: python scripts/explore.py runs/own_problem/FOLDER."""

import sys

from rehearsal_torch.cli.verbs.explore import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
