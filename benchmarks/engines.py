"""What engines cost: starts of jobs, shared cases and fits, two processes of one training, single cases.

    python benchmarks/engines.py [--parts start,sharing] [--small] [--page] [--out docs/results/scale]

Writes scale.json and README.md; the rows are those of `benchmarks/scale`. An interrupted command goes on
where it stopped. Every figure is that of processes of their own, each with one thread.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.scale.runner import main

if __name__ == "__main__":
    main()
