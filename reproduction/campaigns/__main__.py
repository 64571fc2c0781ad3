"""``python -m reproduction.campaigns``: campaigns whose optimum is known."""

import sys

from reproduction.campaigns.documents import PAPER
from reproduction.run import main

if __name__ == "__main__":
    sys.exit(main(PAPER))
