"""The paper's results on structural rehearsal models: python scripts/reproduce_qwz23.py --help."""

import sys

from rehearsal_torch.commands.reproduce_qwz23 import main

if __name__ == "__main__":
    sys.exit(main())
