"""The same work on one thread of the CPU and on a device, by the wall clock, until the device has done it.

    step          training steps of the transition model with 200 units, for each size of a batch
    kernel fit    the kernel matrix of n rows in float64, its Cholesky factor, and a solution
    decide        actions for n cases in one call by `outcome_regression`, fitted to the loan world and moved
    replay        the states under action sequences of a patient, under the ensemble of `checkpoints/sepsis`
    GP round      a proposal of `excbo` on Dropwave after its first rows: Gaussian processes, moved

Models are fitted on the CPU. Seconds are medians, after one call that is not counted; `a second` counts rows,
fits, cases, sequences and proposals. Memory is the most that torch has held on a GPU at a time. With `cpu`
the device is the same CPU: the ratio shows how far two measurements of the same lie apart.

Run: python benchmarks/device.py [cpu|cuda] [--batches 256 4096] [--rows 1000 4000] [--cases 1 20 1000]
[--sequences 10000] [--fitted 1000] [--repeat 5]
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from search import questions
from training import model, table

from rehearsal_torch.checkpoint import load
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.methods.run_parts import Run, build
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.search.search import BatchSearch
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.training.surrogate_fit import fit

CHECKPOINT = Path(__file__).parents[1] / "checkpoints/sepsis"
STEPS, HORIZON, CHANGES = 20, 12, 3
Work = Callable[[str], Callable[[], object]]
"""Given a device, what is measured there."""


def steps(batch: int) -> Work:
    """Some training steps, each on other rows."""

    def on(device: str) -> Callable[[], object]:
        made, data = model(), table(batch * STEPS)
        for part, examples in made.parts(data):
            if isinstance(part, Solved):
                part.solve(*examples)
        assert isinstance(made.mechanism, LocationScale)
        mechanism = made.mechanism.to(device)
        batches = list(zip(*(each.to(device).split(batch) for each in made.examples(data)), strict=True))
        optimiser = torch.optim.Adam(mechanism.parameters(), lr=1e-3, fused=True)

        def work() -> None:
            for parents, values in batches:
                optimiser.zero_grad()
                mechanism.loss(parents, values).backward()
                optimiser.step()

        return work

    return on


def kernel_fit(rows: int) -> Work:
    """A Gaussian kernel of six columns, as the kernel methods fit them."""
    stream = torch.Generator().manual_seed(0)
    inputs = torch.rand(rows, 6, generator=stream, dtype=torch.float64)
    outputs = torch.rand(rows, 1, generator=stream, dtype=torch.float64)

    def on(device: str) -> Callable[[], object]:
        given, values = inputs.to(device), outputs.to(device)
        ridge = rows * 1e-3 * torch.eye(rows, dtype=torch.float64, device=device)

        def work() -> object:
            kernel = (-torch.cdist(given, given).square()).exp()
            return torch.cholesky_solve(values, torch.linalg.cholesky(kernel + ridge))

        return work

    return on


def built(*typed: str) -> Run:
    """A run of the configuration."""
    return build(composed([*typed, "quiet=true", "workers=1"], multirun=False)[0])


def decisions(sizes: Sequence[int], rows: int) -> Iterator[tuple[int, Work]]:
    """Decisions for so many cases, in batches of the method's own size."""
    size = (f"dataset.size.rows={rows}", f"dataset.size.contexts={max(sizes)}")
    run = built("+experiment=auf", "dataset=bank", "decision=outcome_regression", *size)
    fitted, cases = fit(run.surrogate(), run.problem.observations()), map(run.problem.case, range(max(sizes)))
    every, search = list(cases), run.search
    assert isinstance(search, BatchSearch)

    def of(count: int) -> Work:
        def on(device: str) -> Callable[[], object]:
            moved = deepcopy(fitted).to(device)
            parts = [
                every[first : min(first + search.batch_size, count)]
                for first in range(0, count, search.batch_size)
            ]
            return lambda: [search.batch_search(objective_for(run.objective, moved, part)) for part in parts]

        return on

    yield from ((count, of(count)) for count in sizes)


def replays(sequences: int) -> Work:
    """The states under random action sequences."""
    surrogate = load(CHECKPOINT)
    assert isinstance(surrogate, EpisodeSurrogate)

    def on(device: str) -> Callable[[], object]:
        (question,) = questions(deepcopy(surrogate).to(device), HORIZON, CHANGES, 1)
        shape, stream = (sequences, len(question.observed)), torch.Generator().manual_seed(0)
        actions = torch.randint(question.actions, shape, generator=stream).to(device)

        def work() -> object:
            with torch.no_grad():
                return question.replay(actions)

        return work

    return on


def proposal() -> Work:
    """A round on Dropwave."""
    run = built("+experiment=cbo", "dataset=dropwave", "limit=1")
    fitted: Any = fit(run.surrogate(), run.problem.observations(), run.trainer(None))
    case = run.problem.case(0)

    def on(device: str) -> Callable[[], object]:
        moved = deepcopy(fitted).to(device)
        return lambda: run.search(run.objective(moved, case))

    return on


def seconds(work: Callable[[], object], device: str, repeat: int) -> tuple[float, float | None]:
    """Median wall seconds of a call, and the most MiB of memory on a GPU."""
    gpu, found = device == "cuda", []
    if gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeat + 1):
        torch.manual_seed(0)
        began = time.perf_counter()
        work()
        if gpu:
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return median(found[1:]), torch.cuda.max_memory_allocated() / 2**20 if gpu else None


def works(chosen: argparse.Namespace) -> Iterator[tuple[str, int, Work]]:
    """What is measured: its name, how many are done, and it."""
    for batch in chosen.batches:
        yield f"step, batches of {batch:,}", batch * STEPS, steps(batch)
    for rows in chosen.rows:
        yield f"kernel fit, {rows:,} rows", 1, kernel_fit(rows)
    for count, work in decisions(chosen.cases, chosen.fitted):
        yield f"decide, {count:,} cases" if count > 1 else "decide, 1 case", count, work
    yield f"replay, {chosen.sequences:,} sequences", chosen.sequences, replays(chosen.sequences)
    yield "GP round", 1, proposal()


def main(typed: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("device", nargs="?", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--batches", nargs="+", type=int, default=[256, 4096])
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 4000])
    parser.add_argument("--cases", nargs="+", type=int, default=[1, 20, 1000])
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--fitted", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args(typed)
    device = chosen.device
    if device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no CUDA device")
    name = torch.cuda.get_device_name() if device == "cuda" else "the CPU again"
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}; the device is {name}")
    print("| | CPU, s | a second | device, s | a second | times as fast | device memory, MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for what, count, work in works(chosen):
        here, _ = seconds(work("cpu"), "cpu", chosen.repeat)
        there, most = seconds(work(device), device, chosen.repeat)
        memory = "-" if most is None else f"{most:,.0f}"
        print(
            f"| {what} | {here:.3g} | {count / here:,.3g} | {there:.3g} | {count / there:,.3g} | "
            f"{here / there:.2f} | {memory} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
