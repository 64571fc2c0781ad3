"""The study of avoiding undesired futures, by flags; today: python scripts/reproduce.py study=auf --help."""

import sys

from rehearsal_torch.studies.reproduce import with_flags

if __name__ == "__main__":
    sys.exit(with_flags("auf"))
