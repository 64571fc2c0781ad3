"""``python -m reproduction.auf``: avoiding undesired futures."""

import sys

from reproduction.auf.documents import PAPER
from reproduction.run import main

if __name__ == "__main__":
    sys.exit(main(PAPER))
