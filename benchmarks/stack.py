"""Decisions by the indicator's regression, the outcomes' and their stack, on worlds that know the truth.

    python benchmarks/stack.py --seeds 70 71 72 --worlds bank lin_syn1 --out OUT

For every world and seed the stack is fitted once; its two surrogates are those of ``decision=cme`` and
``decision=outcome_regression`` with the same seed, so that all three decide from the same rows for the same
cases. Written are one row per world, method and seed (`stack.csv`) and, per world, the paired difference of
the stack from the better of the other two, with its 95 % t interval over seeds. ``over`` counts claims that
are more than .3 too high, ``unwarned`` those of them without a warning; ``distance_correlation`` is that of
|claim - true| with the distance to the 5th nearest row.
"""

import argparse
import csv
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from rehearsal_torch.evaluation.bootstrap import t_interval
from rehearsal_torch.methods.build import tasked
from rehearsal_torch.methods.conf import CONF
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.training.fit import fit

WORLDS = {
    "bank": ["dataset=bank"],
    "lin_syn1": ["dataset=lin_syn1"],
    "non_syn1": ["dataset=non_syn1"],
    "non_syn2": ["dataset=non_syn2"],
    "nhanes": ["dataset=nhanes"],
    "manage": ["dataset=manage"],
    "bermuda": ["dataset=bermuda"],
    **{
        f"bermuda_{preset}": ["dataset=bermuda", f"dataset.preset={preset}"]
        for preset in ("neurips24", "icml", "icml_code", "qwz23", "aaai", "fitted")
    },
    "yes_no": ["dataset=yes_no"],
    "visits": ["dataset=visits"],
    "classes": ["dataset=classes"],
}
METHODS = ("cme", "outcome_regression", "cme_stack")
FIELDS = (
    *("world", "method", "seed", "cases", "true", "claimed", "no_action", "best", "inside95", "width"),
    *("declined", "weight", "brier_indicator", "brier_outcome", "brier_constant", "desired_rows"),
    *("over", "unwarned", "distance_correlation", "fit_s", "decision_s"),
)
# A claim that is this much too high counts as an over-claim.
OVER = 0.3


def run(world: str, seed: int, cases: int, rows: int) -> Iterator[dict[str, Any]]:
    """The rows of one world and seed, one per method."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        sizes = [f"dataset.size.rows={rows}", f"dataset.size.contexts={cases}"]
        typed = [*WORLDS[world], *sizes, f"seed={seed}"]
        configs = {name: compose("config", [*typed, f"decision={name}"]) for name in METHODS}
    problem = instantiate(configs["cme_stack"].dataset, _convert_="all")
    tasked(configs["cme_stack"], problem)
    torch.manual_seed(seed)
    stack = instantiate(configs["cme_stack"].surrogate, _convert_="all")
    begin = time.process_time()
    fit(stack, problem.observations())
    spent = time.process_time() - begin
    surrogates = {"cme": stack.indicator, "outcome_regression": stack.outcome, "cme_stack": stack}
    every = [problem.case(index) for index in range(problem.count())]
    for method, surrogate in surrogates.items():
        objective = instantiate(configs[method].objective, _convert_="all")
        search = instantiate(configs[method].search, _convert_="all")
        begin, decisions = time.process_time(), []
        for start in range(0, len(every), search.batch_size):
            some = every[start : start + search.batch_size]
            decisions += search.batch_search(objective_for(objective, surrogate, some))
        each = (time.process_time() - begin) / len(every)
        scores = [problem.score(*pair) for pair in zip(every, decisions, strict=True)]
        chosen = [
            (score["probability"], decision)
            for score, decision in zip(scores, decisions, strict=True)
            if decision.alteration is not None and decision.estimate is not None
        ]
        acted = [(truth, decision.estimate) for truth, decision in chosen]
        claims = [(one.estimate if one.alteration is not None else one.baseline).point for one in decisions]
        counts = stack.stack.counts.tolist()
        errors = [decision.estimate.point - truth for truth, decision in chosen]
        over = [decision for error, (_, decision) in zip(errors, chosen, strict=True) if error > OVER]
        yield {
            "world": world,
            "method": method,
            "seed": seed,
            "cases": len(every),
            "true": statistics.fmean(score["probability"] for score in scores),
            "claimed": statistics.fmean(claims),
            "no_action": statistics.fmean(score["no_action"] for score in scores),
            "best": statistics.fmean(score["oracle"] for score in scores),
            "inside95": _mean([float(one.lower <= truth <= one.upper) for truth, one in acted]),
            "width": _mean([one.upper - one.lower for _, one in acted]),
            "declined": len(every) - len(acted),
            "weight": {"cme": 1.0, "outcome_regression": 0.0, "cme_stack": stack.weight}[method],
            **dict(
                zip(
                    ("brier_indicator", "brier_outcome", "brier_constant"),
                    stack.stack.scores.tolist(),
                    strict=True,
                )
            ),
            "desired_rows": int(counts[0]),
            "over": len(over),
            "unwarned": sum(not decision.warnings for decision in over),
            "distance_correlation": _correlation(
                [decision.trace["distance"] for _, decision in chosen], [abs(error) for error in errors]
            ),
            "fit_s": spent,
            "decision_s": each,
        }


def line(row: dict[str, Any]) -> str:
    """A row in words."""
    return (
        f"{row['world']:<18} {row['method']:<19} {row['seed']:>4} true {row['true']:.3f} "
        f"of {row['best']:.3f} claimed {row['claimed']:.3f} inside {row['inside95']:.2f} "
        f"width {row['width']:.2f} weight {row['weight']:.2f} fit {row['fit_s']:.1f} s, "
        f"decision {row['decision_s']:.3f} s"
    )


def paired(rows: Sequence[dict[str, Any]], world: str) -> dict[str, Any]:
    """The stack against the better of the two in a world: mean difference over seeds, its 95 % interval."""
    by_method = {
        name: {row["seed"]: row["true"] for row in rows if row["world"] == world and row["method"] == name}
        for name in METHODS
    }
    means = {name: statistics.fmean(found.values()) for name, found in by_method.items()}
    better = max(("cme", "outcome_regression"), key=lambda name: means[name])
    apart = [by_method["cme_stack"][seed] - value for seed, value in by_method[better].items()]
    found = t_interval(apart)
    return {**means, "better": better, "difference": found.mean, "lower": found.low, "upper": found.high}


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's correlation; nan where one of the two does not vary."""
    if len(one) < 2 or min(statistics.pstdev(one), statistics.pstdev(other)) < 1e-12:
        return math.nan
    return statistics.correlation(one, other)


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def main() -> None:
    """Runs the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    with (chosen.out / "stack.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        # Seed by seed, so that a run that is ended early has the same seeds in every world.
        for seed in chosen.seeds:
            for world in chosen.worlds:
                for row in run(world, seed, chosen.cases, chosen.rows):
                    rows.append(row)
                    writer.writerow(row)
                    stream.flush()
                    print(line(row), flush=True)
    print(f"{'world':<18} {'cme':>6} {'outcome':>8} {'stack':>6}  stack minus the better, 95 % interval")
    for world in chosen.worlds:
        found = paired(rows, world)
        print(
            f"{world:<18} {found['cme']:6.3f} {found['outcome_regression']:8.3f} {found['cme_stack']:6.3f}  "
            f"{found['difference']:+.3f} [{found['lower']:+.3f}, {found['upper']:+.3f}]"
        )


if __name__ == "__main__":
    main()
