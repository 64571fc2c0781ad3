"""Evaluates surrogates by held-out likelihoods: python scripts/cross_validate.py -m
+experiment=lipschitz_grid.
"""

import sys

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.tasks import cross_validate

if __name__ == "__main__":
    sys.exit(main(cross_validate))
