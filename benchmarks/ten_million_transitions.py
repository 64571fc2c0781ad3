"""Learning from millions of transitions: CPU seconds to read and to fit, and the largest memory.

Units of 21 steps of a noisy linear world (9 states, 3 static columns, 1 context, 2 doses) are written to a
Parquet file in a temporary folder, piece by piece. `EpisodeTable` reads and checks it; then the 200-unit
model of transitions trains one epoch on seven of ten units, in batches of 256, its dose effects are selected,
and everything is deleted again. One thread. The largest resident memory is that of the whole process, about
half a gigabyte of which are the imported packages.

Run: python benchmarks/ten_million_transitions.py [transitions]
"""

import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit

STEPS, PIECE = 21, 5_000
STATES = tuple(f"state{place}" for place in range(9))
STATIC = tuple(f"static{place}" for place in range(3))
TASK = {
    "unit": "unit",
    "time": "step",
    "varying": list(STATES),
    "static": list(STATIC),
    "contextual": ["context"],
    "actions": {"dose0": {"unit": "mg"}, "dose1": {"unit": "mg"}},
    "reward": {"weights": {"state0": 1.0}},
}


def write(file: Path, units: int) -> None:
    """Writes units to a Parquet file, a row group for each piece of them."""
    import pyarrow as pa
    import pyarrow.parquet

    draws, writer = np.random.default_rng(0), None
    for begin in range(0, units, PIECE):
        count = min(PIECE, units - begin)
        state, static = draws.random((count, 9)), draws.random((count, 3))
        doses = np.maximum(draws.random((count, STEPS, 2)) - 0.3, 0.0)
        states = np.empty((count, STEPS, 9))
        for step in range(STEPS):
            states[:, step] = state
            state = 0.7 * state + 0.1 * draws.standard_normal((count, 9))
            state[:, :2] += 0.2 * doses[:, step]
        columns = {
            "unit": np.repeat(np.arange(begin, begin + count), STEPS),
            "step": np.tile(np.arange(STEPS), count),
            **{name: states[..., place].ravel() for place, name in enumerate(STATES)},
            **{name: np.repeat(static[:, place], STEPS) for place, name in enumerate(STATIC)},
            "context": draws.random(count * STEPS),
            "dose0": doses[..., 0].ravel(),
            "dose1": doses[..., 1].ravel(),
        }
        table = pa.table(columns)
        writer = pa.parquet.ParquetWriter(file, table.schema) if writer is None else writer
        writer.write_table(table)
    assert writer is not None
    writer.close()


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


def main(transitions: int = 100_000) -> dict[str, float]:
    """Prints and returns rates and the largest memory."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "episodes.parquet"
        write(file, -(-transitions // (STEPS - 1)))
        size = file.stat().st_size / 1e9
        print(f"{size:.2f} GB of Parquet; imported and written with {peak():.2f} GB of memory", flush=True)
        began = time.process_time()
        problem = EpisodeTable(file, TASK)
        read = time.process_time() - began
        print(f"read and checked in {read:.0f} CPU s with {peak():.2f} GB of memory", flush=True)
        torch.manual_seed(0)
        model = TransitionModel(
            **problem.facts().surrogate, mechanism=partial(LocationScale, hidden=200), effects="sparse"
        )
        how = Descent(max_epochs=1, progress=False)
        began = time.process_time()
        # Nothing here keeps the rows to learn from.
        fit(model, problem.observations(), how, problem.held_out())
        found = {"read": read, "fit": time.process_time() - began, "peak": peak()}
    print(
        f"{transitions:,} transitions: read and checked in {read:.0f} CPU s; one epoch on seven tenths of "
        f"them, with ranges, levels and effects, in {found['fit']:.0f} CPU s; largest memory "
        f"{found['peak']:.2f} GB"
    )
    for _, name, value in how.history:
        print(f"{name} {value:.4f}")
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
