"""Judges surrogates by held-out likelihoods: python scripts/cross_validate.py -m +experiment=lipschitz_grid."""

import sys

from rehearsal_torch.commands.command_line import main
from rehearsal_torch.commands.cross_validate import cross_validate, grid

if __name__ == "__main__":
    sys.exit(main(cross_validate, after=grid))
