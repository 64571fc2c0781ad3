"""Prepares data from public files: python scripts/prepare.py nhanes source=FOLDER out=FOLDER."""

import sys

from rehearsal_torch.cli.verbs.prepare import main

if __name__ == "__main__":
    sys.exit(main())
