"""Process time of a fit, and of decisions for 1, 20 and 1,000 cases in one call, beside plain NumPy.

    python benchmarks/cases.py [--worlds bank bermuda] [--cases 1 20 1000] [--repeat 3] [--out DIR]

The reference is Algorithm 1 of Du et al. (2026) in plain NumPy with its published settings (`kernel.py`): one
factorisation, then cases and starts one by one, 20 starts of 100 steps each. It does less than the methods
here: no interval, no baseline, no support, no sensitivity, widths given, and one candidate set (the bank's
world has one; Bermuda has five, and no reference). Every method decides as in a run, with its own batch size.
Seconds are those of all threads, per decision; the reference is timed on at most 20 cases.
"""

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

sys.path.insert(0, str(Path(__file__).parent))
from kernel import PlainAlgorithm, examples

from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.methods.instantiate import tasked
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.training.surrogate_fit import fit

METHODS = ("cme_published", "cme", "outcome_regression", "care", "micns")
FIELDS = ("world", "method", "repetition", "cases", "fit", "seconds")
FEW = 20
Line = dict[str, object]


def seconds_of(call: Callable[[], object]) -> float:
    """Process seconds of all threads."""
    began = time.process_time()
    call()
    return time.process_time() - began


def measured(world: str, method: str, rows: int, sizes: Sequence[int], repetition: int) -> Iterator[Line]:
    """One fit, and one call for each number of cases."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(
            "config",
            [
                f"dataset={world}", f"dataset.size.rows={rows}", f"dataset.size.contexts={max(sizes)}",
                f"seed={repetition}", f"decision={method}",
            ],
        )  # fmt: skip
    problem = instantiate(config.dataset, _convert_="all")
    tasked(config, problem)
    torch.manual_seed(repetition)
    surrogate, table = instantiate(config.surrogate, _convert_="all"), problem.observations()
    spent = seconds_of(lambda: fit(surrogate, table))
    objective = instantiate(config.objective, _convert_="all")
    search = instantiate(config.search, _convert_="all")
    every = [problem.case(index) for index in range(max(sizes))]

    def decide(count: int) -> None:
        for first in range(0, count, search.batch_size):
            some = every[first : min(first + search.batch_size, count)]
            search.batch_search(objective_for(objective, surrogate, some))

    decide(1)
    for size in sizes:
        each = seconds_of(lambda size=size: decide(size)) / size  # type: ignore[misc]
        yield {
            "world": world,
            "method": method,
            "repetition": repetition,
            "cases": size,
            "fit": spent,
            "seconds": each,
        }


def plain(rows: int, sizes: Sequence[int], repetition: int) -> Iterator[Line]:
    """The reference in the bank's world."""
    world = Loan(size=SampleSize(rows=rows, contexts=FEW), seed=repetition)
    given = examples(world)
    found: list[PlainAlgorithm] = []
    spent = seconds_of(lambda: found.append(PlainAlgorithm(given)))
    moments = world.observations().columns(world.task.context)
    cases = [world.case(index) for index in range(FEW)]
    context = (world.task.given(cases) - moments.mean(0)) / moments.std(0)
    actions = world.observations().columns(("A2",))
    lower, upper = (((bound - actions.mean()) / actions.std()).item() for bound in (0.0, 1.0))

    def decide(count: int) -> None:
        for row in context[:count].numpy():
            found[0].decide(row, lower, upper)

    for size in sizes:
        few = min(size, FEW)
        each = seconds_of(lambda few=few: decide(few)) / few  # type: ignore[misc]
        yield {
            "world": "bank",
            "method": "plain NumPy",
            "repetition": repetition,
            "cases": size,
            "fit": spent,
            "seconds": each,
        }


def table(rows: Sequence[Line], sizes: Sequence[int]) -> Iterator[str]:
    """Medians over repetitions, one line per world and method."""
    heads = [f"{f'{size} cases':>14} {'NumPy /':>8}" for size in sizes]
    yield f"{'world':<9} {'method':<19} {'fit, s':>7} {' '.join(heads)}"
    base = _medians(rows, "bank", "plain NumPy")
    for world, method in dict.fromkeys((row["world"], row["method"]) for row in rows):
        own = _medians(rows, world, method)
        fitted = statistics.median(_numbers(rows, world, method, "fit"))
        cells = [
            f"{own[size]:12.4f} s {base[size] / own[size]:8.2f}"
            if world == "bank" and base
            else f"{own[size]:12.4f} s {'-':>8}"
            for size in sizes
        ]
        yield f"{world!s:<9} {method!s:<19} {fitted:7.2f} {' '.join(cells)}"


def _medians(rows: Sequence[Line], world: object, method: object) -> dict[object, float]:
    sizes = {row["cases"] for row in rows if (row["world"], row["method"]) == (world, method)}
    return {size: statistics.median(_numbers(rows, world, method, "seconds", size)) for size in sizes}


def _numbers(
    rows: Sequence[Line], world: object, method: object, key: str, cases: object = None
) -> list[float]:
    return [
        float(str(row[key]))
        for row in rows
        if (row["world"], row["method"]) == (world, method) and cases in (None, row["cases"])
    ]


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--worlds", nargs="+", default=["bank", "bermuda"], choices=["bank", "bermuda"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--cases", nargs="+", type=int, default=[1, 20, 1000])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[Line] = []
    for repetition in range(chosen.repeat):
        if "bank" in chosen.worlds:
            rows += plain(chosen.rows, chosen.cases, repetition)
        for world in chosen.worlds:
            for method in chosen.methods:
                rows += measured(world, method, chosen.rows, chosen.cases, repetition)
    print("\n".join(table(rows, chosen.cases)))
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "cases.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
