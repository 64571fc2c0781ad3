"""The study of causal Bayesian optimisation, by flags; today: scripts/reproduce.py study=cbo --help."""

import sys

from rehearsal_torch.studies.reproduce import with_flags

if __name__ == "__main__":
    sys.exit(with_flags("cbo"))
