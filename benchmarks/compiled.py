"""What torch.compile gains: the training step of the transition model, and its forward pass.

    step       forward, backward and Adam on batches of 256 rows, the bare loop of `benchmarks/training.py`
    forward    the next states of n rows, in float64 and without gradients, as the searches ask for them

Each is measured in turns with the same code as it stands: on the CPU in process time on one thread, on a GPU
by the wall clock, until the GPU has done it. Compilation is measured once, by the wall clock: it needs a C++
compiler, and is done again in every process unless its cache is kept. `pays from` is the number of rows from
which the time that is saved exceeds that of compilation.

Run: python benchmarks/compiled.py [rows] [rounds] [cpu|cuda]
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

from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.location_scale import LocationScale

SIZES, REPEATED = (32, 512, 4096), 30


def clock(device: str) -> Callable[[], float]:
    """What measures on a device, in seconds."""
    if device == "cpu":
        return time.process_time

    def now() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return now


def fitted(rows: int, device: str) -> tuple[LocationScale, Tensor, Tensor]:
    """The mechanism of the transition model, and its examples, on a device."""
    made, data = model(), table(rows)
    for part, examples in made.parts(data):
        if isinstance(part, Solved):
            part.solve(*examples)
    assert isinstance(made.mechanism, LocationScale)
    parents, values = made.examples(data)
    return made.mechanism.to(device), parents.to(device), values.to(device)


def line(what: str, rows: int, plain: float, compiled: float, waited: float) -> None:
    """Prints a row; times in seconds for all rows."""
    saved = (plain - compiled) / rows
    pays = f"{waited / saved:,.0f} rows" if saved > 0 else "never"
    print(
        f"| {what} | {1e6 * plain / rows:.2f} | {1e6 * compiled / rows:.2f} | {plain / compiled:.2f} | "
        f"{waited:.0f} | {pays} |",
        flush=True,
    )


def fastest(work: Callable[[], object], now: Callable[[], float]) -> float:
    """Seconds of the fastest of some repetitions."""
    found = []
    for _ in range(REPEATED):
        begun = now()
        work()
        found.append(now() - begun)
    return min(found)


def step(rows: int, rounds: int, device: str) -> None:
    """The training step."""
    (one, parents, values), (other, _, _) = fitted(rows, device), fitted(rows, device)
    begun = time.perf_counter()
    compiled = torch.compile(other.loss, dynamic=False)
    compiled(parents[:BATCH], values[:BATCH]).backward()
    waited = time.perf_counter() - begun

    def batches() -> Iterable[tuple[Tensor, ...]]:
        order = torch.randperm(rows, device=device)
        return zip(parents[order].split(BATCH), values[order].split(BATCH), strict=True)

    plain, faster = [], []
    for _ in range(rounds):
        plain.append(min(loop(one, one.loss, batches, 2, clock(device))))
        faster.append(min(loop(other, compiled, batches, 2, clock(device))))
    line(f"step, {BATCH} rows", rows, min(plain), min(faster), waited)


@torch.no_grad()
def forward(device: str) -> None:
    """The forward pass, for some numbers of rows."""
    mechanism, parents, _ = fitted(max(SIZES), device)
    mechanism.eval().double()
    given, noise = parents.double(), torch.randn(max(SIZES), 9, dtype=torch.float64).to(device)
    begun = time.perf_counter()
    compiled = torch.compile(mechanism.forward, dynamic=True)
    compiled(given[: SIZES[0]], noise[: SIZES[0]])
    waited = time.perf_counter() - begun
    for rows in SIZES:
        asked = given[:rows], noise[:rows]
        torch.testing.assert_close(compiled(*asked), mechanism(*asked), rtol=1e-9, atol=1e-9)
        plain, faster = (fastest(partial(one, *asked), clock(device)) for one in (mechanism, compiled))
        line(f"forward, {rows} rows", rows, plain, faster, waited)


def main(rows: int = 20_480, rounds: int = 3, device: str = "cpu") -> None:
    """Prints the table."""
    if device == "cuda":
        print(torch.cuda.get_device_name())
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)
    # The exact spectral norm decides by a value whether it has to be taken again: the graph breaks there.
    torch._logging.set_logs(dynamo=logging.ERROR)
    print("| what | plain, µs a row | compiled, µs a row | ratio | compilation, s | pays from |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    step(rows - rows % BATCH, rounds, device)
    forward(device)


if __name__ == "__main__":
    numbers = [each for each in sys.argv[1:] if each not in ("cpu", "cuda")]
    main(*map(int, numbers), device="cuda" if "cuda" in sys.argv[1:] else "cpu")
