"""``python -m reproduction.cbo``: causal Bayesian optimisation."""

import sys

from reproduction.cbo.documents import PAPER
from reproduction.run import main

if __name__ == "__main__":
    sys.exit(main(PAPER))
