"""The study of the simulated cohort, by flags; today: python scripts/reproduce.py study=sepsis --help."""

import sys

from rehearsal_torch.studies.reproduce import with_flags

if __name__ == "__main__":
    sys.exit(with_flags("sepsis"))
