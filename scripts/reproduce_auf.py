"""The paper's tables on avoiding undesired futures: python scripts/reproduce_auf.py --help."""

import sys

from rehearsal_torch.studies.auf.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
