"""Evaluates surrogates by held-out likelihoods: python scripts/cross_validate.py -m
+experiment=lipschitz_grid.
"""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("cross_validate"))
