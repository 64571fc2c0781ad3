"""The paper's figures on the simulated cohort: python scripts/reproduce_sepsis.py --help."""

import sys

from rehearsal_torch.studies.sepsis.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
