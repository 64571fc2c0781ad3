"""Merges the shards of a sweep: python scripts/collect.py runs/sepsis/FOLDER."""

import sys

from rehearsal_torch.cli.verbs.collect import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
