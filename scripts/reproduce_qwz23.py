"""The study of structural rehearsal models, by flags; today: scripts/reproduce.py study=online --help."""

import sys

from rehearsal_torch.studies.reproduce import with_flags

if __name__ == "__main__":
    sys.exit(with_flags("online"))
