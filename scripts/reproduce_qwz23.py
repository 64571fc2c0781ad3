"""The paper's results on structural rehearsal models: python scripts/reproduce_qwz23.py --help."""

import sys

from rehearsal_torch.studies.qwz23.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
