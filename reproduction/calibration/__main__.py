"""``python -m reproduction.calibration``: claims and truths."""

import sys

from reproduction.calibration.documents import PAPER
from reproduction.run import main

if __name__ == "__main__":
    sys.exit(main(PAPER))
