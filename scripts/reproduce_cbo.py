"""The paper's results on causal Bayesian optimisation: python scripts/reproduce_cbo.py --help."""

import sys

from rehearsal_torch.studies.cbo.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
