"""What torch.compile gains on the CPU: the training step of the transition model, and its forward pass.

    step       forward, backward and Adam on batches of 256 rows, the bare loop of `benchmarks/training.py`
    forward    the next states of n rows, in float64 and without gradients, as the searches ask for them

Each is measured in turns with the same code as it stands, in process time on one thread. Compilation is
measured once, by the wall clock: it needs a C++ compiler, and is done again in every process unless its cache
is kept. `pays from` is the number of rows from which the time that is saved exceeds that of compilation.

Run: python benchmarks/compiled.py [rows] [rounds]
"""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from training import BATCH, loop, model, table

from rehearsal_torch.data.part import Solved
from rehearsal_torch.mechanisms.location_scale import LocationScale

SIZES, REPEATED = (32, 512, 4096), 30


def fitted(rows: int) -> tuple[LocationScale, Tensor, Tensor]:
    """The mechanism of the transition model, and its examples."""
    made, data = model(), table(rows)
    for part, examples in made.parts(data):
        if isinstance(part, Solved):
            part.solve(*examples)
    assert isinstance(made.mechanism, LocationScale)
    return made.mechanism, *made.examples(data)


def line(what: str, rows: int, plain: float, compiled: float, waited: float) -> None:
    """Prints a row; times in seconds for all rows."""
    saved = (plain - compiled) / rows
    pays = f"{waited / saved:,.0f} rows" if saved > 0 else "never"
    print(
        f"| {what} | {1e6 * plain / rows:.2f} | {1e6 * compiled / rows:.2f} | {plain / compiled:.2f} | "
        f"{waited:.0f} | {pays} |",
        flush=True,
    )


def fastest(work: Callable[[], object]) -> float:
    """Process seconds of the fastest of some repetitions."""
    found = []
    for _ in range(REPEATED):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def step(rows: int, rounds: int) -> None:
    """The training step."""
    (one, parents, values), (other, _, _) = fitted(rows), fitted(rows)
    begun = time.perf_counter()
    compiled = torch.compile(other.loss, dynamic=False)
    compiled(parents[:BATCH], values[:BATCH]).backward()
    waited = time.perf_counter() - begun

    def batches() -> Iterable[tuple[Tensor, ...]]:
        order = torch.randperm(rows)
        return zip(parents[order].split(BATCH), values[order].split(BATCH), strict=True)

    plain, faster = [], []
    for _ in range(rounds):
        plain.append(min(loop(one, one.loss, batches, 2)))
        faster.append(min(loop(other, compiled, batches, 2)))
    line(f"step, {BATCH} rows", rows, min(plain), min(faster), waited)


@torch.no_grad()
def forward() -> None:
    """The forward pass, for some numbers of rows."""
    mechanism, parents, _ = fitted(max(SIZES))
    mechanism.eval().double()
    given, noise = parents.double(), torch.randn(max(SIZES), 9, dtype=torch.float64)
    begun = time.perf_counter()
    compiled = torch.compile(mechanism.forward, dynamic=True)
    compiled(given[: SIZES[0]], noise[: SIZES[0]])
    waited = time.perf_counter() - begun
    for rows in SIZES:
        asked = given[:rows], noise[:rows]
        torch.testing.assert_close(compiled(*asked), mechanism(*asked), rtol=1e-12, atol=1e-12)
        plain, faster = (fastest(partial(one, *asked)) for one in (mechanism, compiled))
        line(f"forward, {rows} rows", rows, plain, faster, waited)


def main(rows: int = 20_480, rounds: int = 3) -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)
    # The exact spectral norm decides by a value whether it has to be taken again: the graph breaks there.
    torch._logging.set_logs(dynamo=logging.ERROR)
    print("| what | plain, µs a row | compiled, µs a row | ratio | compilation, s | pays from |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    step(rows - rows % BATCH, rounds)
    forward()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
