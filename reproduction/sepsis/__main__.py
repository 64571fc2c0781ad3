"""``python -m reproduction.sepsis``: the simulated cohort."""

import sys

from reproduction.run import main
from reproduction.sepsis.documents import PAPER

if __name__ == "__main__":
    sys.exit(main(PAPER))
