"""Whether the claims of the methods keep their thresholds: a small version of study=calibration.

    python benchmarks/calibration.py
    python benchmarks/calibration.py workers=1

Printed are all thresholds of rehearsal_torch/studies/calibration/thresholds.yaml with the values found; the
exit code is 1 if one is broken. `rehearsal_torch.studies.calibration.thresholds` says what they are.
"""

import sys

from rehearsal_torch.studies.calibration.thresholds import main

if __name__ == "__main__":
    sys.exit(main())
