"""The paper's tables on avoiding undesired futures: python scripts/reproduce_auf.py --help."""

import sys

from rehearsal_torch.commands.reproduce_auf import main

if __name__ == "__main__":
    sys.exit(main())
