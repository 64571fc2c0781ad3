"""Speed of the package beside plain references and peers, on the same work in the same process.

    python benchmarks/beside.py [--parts linear,graphs] [--repeat 9] [--small] [--out docs/results/bench]

Writes bench.json and README.md; the rows are those of `benchmarks/suite`. An interrupted command goes on
where it stopped. One thread; set OMP_NUM_THREADS=1.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.suite.runner import main

if __name__ == "__main__":
    main()
