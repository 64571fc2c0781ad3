"""Judges surrogates by held-out likelihoods: python scripts/cross_validate.py -m +experiment=lipschitz_grid."""

import sys

from rehearsal_torch.cli.cross_validate import cross_validate, grid
from rehearsal_torch.cli.main import main

if __name__ == "__main__":
    sys.exit(main(cross_validate, after=grid))
