"""``python -m rehearsal_torch VERB ...``, which is ``rehearsal VERB ...``."""

import sys

from rehearsal_torch.console_command import main

if __name__ == "__main__":
    sys.exit(main())
