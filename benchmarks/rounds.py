"""Process time of a round of rehearsal learning, in milliseconds on one core.

    round      Bermuda coral reef, online, from 10 rows on: fit the posterior over five graphs, draw 10,000 +
               10,000 scenarios for each of five targets, find the qualifying values, estimate the
               information, maximise it, certify with 1,000 more. The median and the maximum of the rounds
               after the first, which includes imports.
    sweep      From 10,000 scenarios of two rows to the points that lie in at least 7,000 of their intervals,
               for five targets; no interval is empty, which is the worst case. The reference is the algorithm
               of the paper, which processes the interval ends one by one in Python.
    estimate   The information at 16 alterations of one target by closed forms, by a nested sample and by
               nearest neighbours, 300 models each.

Run: python benchmarks/rounds.py [--rounds 20] [--repeat 5] [--out DIR]
Writes DIR/rounds.csv with one row per measurement.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from rehearsal_torch.certificate import PacBound
from rehearsal_torch.objectives.information import ENTROPIES, Entropy, Information
from rehearsal_torch.objectives.scenario_success import Scenarios
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.problems.rehearsal.bermuda import Bermuda
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.informative import Informative
from rehearsal_torch.search.alterations.interval_sweep import Cover, intervals
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.surrogates.structural.sampled_models import SampledModels
from rehearsal_torch.training.fit import fit

Row = dict[str, object]


def timed(call: Callable[[], object]) -> float:
    """Process milliseconds."""
    began = time.process_time()
    call()
    return 1e3 * (time.process_time() - began)


def rounds(count: int, tau: float) -> tuple[list[Row], StructuralPosterior, Bermuda]:
    """Time of each part of each round."""
    world = Bermuda(preset="qwz23", size=SampleSize(rows=10, contexts=count))
    table, model = world.observations(), StructuralPosterior(world.task, world.hypotheses)
    search, certify, found = Informative(tau=tau, fallback="most_probable"), PacBound(), []
    for index in range(count):
        case, marks = world.case(index), [time.process_time()]
        fit(model, table)
        marks.append(time.process_time())
        objective = SuccessProbability.for_cases(
            model, [case], search_scenarios=10000, validation_scenarios=10000
        )
        marks.append(time.process_time())
        (decision,) = search.batch_search(objective)
        marks.append(time.process_time())
        certify(model, objective, decision)
        marks.append(time.process_time())
        parts = [1e3 * (after - before) for before, after in pairwise(marks)]
        counts = {
            "qualifying": len(decision.trace["qualifying"]),
            "evaluations": decision.trace["evaluations"],
        }
        names = ("fit", "scenarios", "search", "certificate")
        found.append(
            {
                "what": "round",
                "tau": tau,
                "index": index,
                **dict(zip(names, parts, strict=True)),
                "ms": sum(parts),
                **counts,
            }
        )
        table = table + world.respond(case, decision)
    return found, model, world


def walked(left: Tensor, right: Tensor, need: int) -> list[tuple[float, float]]:
    """The paper's Algorithm 3."""
    ends = sorted([(value, 0) for value in left.tolist()] + [(value, 1) for value in right.tolist()])
    count, found, start = 0, [], None
    for value, side in ends:
        count += 1 if side == 0 else -1
        if count >= need and start is None:
            start = value
        elif count < need and start is not None:
            found.append((start, value))
            start = None
    return found


def sweeps(repeat: int, count: int = 10000, targets: int = 5) -> list[Row]:
    """Both algorithms to find covered points, from scenarios with two rows each."""
    stream, every = torch.Generator().manual_seed(0), []
    lower, upper = torch.full((1,), -3.0, dtype=torch.float64), torch.full((1,), 3.0, dtype=torch.float64)
    for _ in range(targets):
        middle, half = (
            torch.randn(count, dtype=torch.float64, generator=stream).clamp(-1, 1),
            1 + torch.rand(count, dtype=torch.float64, generator=stream),
        )
        gains = torch.tensor([[[1.0], [-1.0]]], dtype=torch.float64) * (
            0.5 + torch.rand(count, 1, 1, dtype=torch.float64, generator=stream)
        )
        every.append(
            Scenarios(
                gains,
                gains[..., 0].abs().unsqueeze(1)
                * torch.stack([half + middle, half - middle], -1).unsqueeze(1),
            )
        )
    need = int(0.7 * count)

    def swept() -> list[Tensor]:
        ends = [intervals(each.gains[..., 0], each.slack, lower, upper) for each in every]
        return [Cover.of(left[:, 0], right[:, 0]).at_least(need) for left, right in ends]

    def reference() -> list[Tensor]:
        ends = [intervals(each.gains[..., 0], each.slack, lower, upper) for each in every]
        return [
            torch.tensor(walked(left[:, 0], right[:, 0], need), dtype=torch.float64).reshape(-1, 2)
            for left, right in ends
        ]

    if not all(len(one) and torch.equal(one, other) for one, other in zip(swept(), reference(), strict=True)):
        raise RuntimeError("the sweep and the walk disagree: the benchmark would compare different things")
    return [
        {"what": "sweep", "index": index, "ms": timed(swept), "reference": timed(reference)}
        for index in range(repeat)
    ]


def estimates(model: StructuralPosterior, world: Bermuda, repeat: int) -> list[Row]:
    """Time of each estimator of the information."""
    contexts, points, rows = (
        model.task.given([world.case(0)]),
        torch.linspace(-1, 1, 16, dtype=torch.float64).unsqueeze(-1),
        list[Row](),
    )

    def asked(entropy: Entropy, models: SampledModels) -> Tensor:
        return Information(model, models, contexts, ("Omega",), entropy).at(0, points)

    for entropy in ENTROPIES:
        rows += [
            {"what": entropy, "index": index, "ms": timed(partial(asked, entropy, model.sampled(300, index)))}
            for index in range(repeat)
        ]
    return rows


def main() -> None:
    """Measures, prints a table and writes it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    whole: list[Row] = []
    for tau in (0.7, 0.05):
        found, model, world = rounds(chosen.rounds, tau)
        later = found[1:] or found
        parts = ", ".join(
            f"{name} {statistics.median(float(str(row[name])) for row in later):.0f}"
            for name in ("fit", "scenarios", "search", "certificate")
        )
        each = [float(str(row["ms"])) for row in later]
        sets = statistics.median(int(str(row["qualifying"])) for row in later)
        print(
            f"round at tau={tau:g}: median {statistics.median(each):.0f} ms, maximum {max(each):.0f} ms "
            f"({parts}); targets that qualify: {sets:g}",
            flush=True,
        )
        whole += found
    found = sweeps(chosen.repeat)
    own_ms, reference_ms = (
        statistics.median(float(str(row[name])) for row in found) for name in ("ms", "reference")
    )
    print(
        f"sweep of 10,000 scenarios x 5 targets: {own_ms:.1f} ms; walking in Python {reference_ms:.1f} ms, "
        f"{reference_ms / own_ms:.0f} times as long",
        flush=True,
    )
    whole += found
    for row in (found := estimates(model, world, chosen.repeat)):
        whole.append(row)
    for entropy in ENTROPIES:
        print(
            f"information by {entropy}: "
            f"{statistics.median(float(str(row['ms'])) for row in found if row['what'] == entropy):.0f} ms",
            flush=True,
        )
    chosen.out.mkdir(parents=True, exist_ok=True)
    with (chosen.out / "rounds.csv").open("w", newline="", encoding="utf-8") as stream:
        fields = (
            "what",
            "tau",
            "index",
            "fit",
            "scenarios",
            "search",
            "certificate",
            "ms",
            "reference",
            "qualifying",
            "evaluations",
        )
        writer = csv.DictWriter(stream, fields)
        writer.writeheader()
        writer.writerows(whole)


if __name__ == "__main__":
    main()
