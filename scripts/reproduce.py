"""The tables and figures of a paper: python scripts/reproduce.py study=auf --help."""

import sys

from rehearsal_torch.studies.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
