"""Fitting methods for cases to a Parquet file that need not fit in memory: CPU seconds, largest memory.

Rows of a world of five variables and an outcome (three of the context, one covariate, one action) are written
to a Parquet file in a temporary folder, piece by piece. `TableFile` reads and checks it part by part, and a
method is fitted to its blocks; then everything is deleted again. The largest resident memory is that of the
whole process, about 0.4 GB of which are the imported packages.

`gradients` is the published estimator solved by conjugate gradients: it keeps every row, and a case that is
decided on takes systems of their size, so that two cases are timed as well.

With `memory`, the same file is read at once (`RehearsalTable`), as a comparison; it refuses 2 GiB and more.

Run: python benchmarks/rows_larger_than_memory.py [rows] [nystrom|outcomes|gradients] [blocks|memory]
"""

import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.problems.rehearsal.table_file import TableFile
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.training.fit import fit

PIECE = 100_000
TASK = {
    "graph": {"parents": {"u": ["x1"], "a": ["u", "x2"], "y": ["a", "u", "x3"]}},
    "context": ["x1", "x2", "x3"],
    "box": {"a": [-3, 3]},
    "region": {"y": [1.0, None]},
}
CASES = {"x1": [0.0, 1.0], "x2": [0.0, -1.0], "x3": [0.0, 0.5]}


def write(file: Path, rows: int) -> None:
    """Writes rows to a Parquet file, a row group for each piece of them."""
    import pyarrow as pa
    import pyarrow.parquet

    draws, writer = np.random.default_rng(0), None
    for begin in range(0, rows, PIECE):
        count = min(PIECE, rows - begin)
        x = draws.standard_normal((3, count))
        u = np.tanh(x[0]) + 0.5 * draws.standard_normal(count)
        a = np.clip(0.5 * u + 0.3 * x[1] + 0.7 * draws.standard_normal(count), -3, 3)
        y = np.sin(1.5 * a) + 0.5 * u + 0.4 * x[2] + 0.3 * draws.standard_normal(count)
        table = pa.table({"x1": x[0], "x2": x[1], "x3": x[2], "u": u, "a": a, "y": y})
        writer = pa.parquet.ParquetWriter(file, table.schema) if writer is None else writer
        writer.write_table(table)
    assert writer is not None
    writer.close()


def model(method: str) -> RehearsalSurrogate:
    """The unfitted model of a method, with its defaults."""
    if method == "outcomes":
        return OutcomeRegression(TASK)
    solver, rank = ("cg", 100) if method == "gradients" else ("nystrom", 200)
    return NestedRidge(TASK, partial(ProductRidge, solver=solver, rank=rank), sequential=False)


def decide(surrogate: RehearsalSurrogate, problem: RehearsalTable) -> float:
    """CPU seconds to decide for the two cases."""
    began = time.process_time()
    cases = [problem.case(index) for index in range(2)]
    ProjectedAscent(rate=0.2).batch_search(KernelValue.for_cases(surrogate, cases, caution=0.0))
    return time.process_time() - began


def peak() -> float:
    """The largest resident memory of this process so far, in GB. Linux counts it anew for a program that is
    started in VmHWM alone: `ru_maxrss` begins with that of the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(found.split()[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def main(rows: int = 100_000, method: str = "nystrom", way: str = "blocks") -> dict[str, float]:
    """Prints and returns CPU seconds and the largest memory."""
    import pandas as pd

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        write(file, rows)
        size = file.stat().st_size / 1e9
        print(f"{size:.2f} GB of Parquet; imported and written with {peak():.2f} GB of memory", flush=True)
        began = time.process_time()
        kind = TableFile if way == "blocks" else RehearsalTable
        problem = kind(file, TASK, pd.DataFrame(CASES))
        read = time.process_time() - began
        began = time.process_time()
        fitted = fit(model(method), problem.training_rows())
        found = {"read": read, "fit": time.process_time() - began}
        if method == "gradients":
            print(f"fitted in {found['fit']:.1f} CPU s with {peak():.2f} GB of memory", flush=True)
            found["decide"] = decide(fitted, problem)
    found["peak"] = peak()
    decided = f"two cases decided in {found['decide']:.1f} CPU s, " if "decide" in found else ""
    print(
        f"{rows:,} rows, {method}, {way}: read and checked in {read:.1f} CPU s, fitted in {found['fit']:.1f} "
        f"CPU s, {decided}largest memory {found['peak']:.2f} GB"
    )
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:4])
