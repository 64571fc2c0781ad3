"""``python -m reproduction.online``: structural rehearsal models."""

import sys

from reproduction.online.documents import PAPER
from reproduction.run import main

if __name__ == "__main__":
    sys.exit(main(PAPER))
