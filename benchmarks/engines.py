"""What engines cost: starts of jobs, shared cases and fits, two processes of one training, single cases.

    python benchmarks/engines.py [--parts start,sharing] [--rounds 1] [--small] [--page] [--out DIR]

Writes scale.json and README.md (--out, by default docs/results/scale); the rows are those of
`benchmarks/scale`. An interrupted command goes on where it stopped, and one with more rounds adds them. Every
figure is that of processes of their own, each with one thread.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.scale.runner import main

if __name__ == "__main__":
    main()
