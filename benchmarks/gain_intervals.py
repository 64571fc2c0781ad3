"""How often the interval of a method's gain over doing nothing holds the truth, in worlds that know it.

    python benchmarks/gain_intervals.py --worlds lin_syn1 non_syn1 non_syn2 bank --seeds 930 931 932 933

`method_choice` compares methods by models of halves of the rows, and gives the gain of each over doing
nothing with a 95 % interval. The world knows the gain of the same method in its own cases, fitted to halves
of the rows, of which the comparison speaks, and to all rows, with which a run decides. Written are one row
per world, seed and method: the gain, its interval, and both truths.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from rehearsal_torch.claims.rows_as_cases import part_of
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.method_choice import NOTHING, applicable, chosen, with_method
from rehearsal_torch.methods.method_comparison import Limits, compared
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.training.surrogate_fit import fit, folds_of

FIELDS = ("world", "seed", "method", "gain", "lower", "upper", "true", "true_all", "seconds")
# Truths of nonlinear worlds are simulated.
ERROR = 1e-3


def run(world: str, seed: int, methods: Sequence[str], asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The methods in one world and seed."""
    sizes = [f"dataset.size.rows={asked.rows}", f"dataset.size.contexts={asked.cases}"]
    config, _ = composed([f"dataset={world}", f"seed={seed}", "decision=auto", *sizes], multirun=False)
    problem, began = problem_of(config), time.process_time()
    some = [each for each in applicable(config, problem)[0] if each.name in methods]
    limits = Limits(asked.rows, asked.compared, asked.repeats)
    found = compared(problem.observations(), None, problem.question(), some, limits, seed)
    choice = chosen(found, asked.rows)
    table = problem.observations()
    halves = [part_of(table, fold.held_out) for fold in folds_of(len(table), None, 2, seed)]

    def truth(name: str, tables: Sequence[Any]) -> float:
        made, scores = build(with_method(config, name), problem), []
        for rows in tables:
            decided = rounds(problem, fit(made.surrogate(), rows), made.objective, made.search, seed=seed)
            scores += [one.score["probability"] for one in decided]
        return statistics.fmean(scores)

    nothing = truth(NOTHING, [table])
    for name in methods:
        one = choice.standing(name)
        ends = {"gain": one.gain, "lower": one.gain_lower, "upper": one.gain_upper}
        both = {"true": truth(name, halves) - nothing, "true_all": truth(name, [table]) - nothing}
        facts = {"world": world, "seed": seed, "method": name, "seconds": time.process_time() - began}
        yield {**facts, **ends, **both}


def holds(row: dict[str, Any], truth: str = "true") -> bool:
    """Whether the interval holds the truth."""
    return bool(row["lower"] - ERROR <= row[truth] <= row["upper"] + ERROR)


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A line per world and method, and one for all: mean gain, mean truths, mean width, shares that hold."""
    heads = f"{'of':>3} {'gain':>7} {'true':>7} {'all':>7} {'width':>6} {'held':>5} {'all':>5}"
    lines = [f"{'world':<10} {'method':<19} {heads}"]
    pairs = dict.fromkeys((row["world"], row["method"]) for row in rows)
    for world, method in [*pairs, ("all", "all")]:
        mine = [row for row in rows if "all" in (world,) or (row["world"], row["method"]) == (world, method)]
        means = " ".join(
            f"{statistics.fmean(row[name] for row in mine):+7.3f}" for name in ("gain", "true", "true_all")
        )
        width = statistics.fmean(row["upper"] - row["lower"] for row in mine)
        held, whole = (statistics.fmean(holds(row, name) for row in mine) for name in ("true", "true_all"))
        lines.append(f"{world:<10} {method:<19} {len(mine):3d} {means} {width:6.3f} {held:5.2f} {whole:5.2f}")
    return lines


def main() -> None:
    """Runs the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=["lin_syn1", "non_syn1", "non_syn2", "bank"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(930, 940)))
    parser.add_argument("--methods", nargs="+", default=["care", "outcome_regression"])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--cases", type=int, default=20, help="cases of the world")
    parser.add_argument("--compared", type=int, default=10, help="cases in each half")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with (asked.out / "gain_intervals.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        for seed in asked.seeds:
            for world in asked.worlds:
                for row in run(world, seed, asked.methods, asked):
                    found.append(row)
                    writer.writerow(row)
                    stream.flush()
                    print(
                        f"{world} {seed} {row['method']}: gain {row['gain']:+.3f} ({row['lower']:+.3f} to "
                        f"{row['upper']:+.3f}), true {row['true']:+.3f} and {row['true_all']:+.3f}, "
                        f"{row['seconds']:.0f} s",
                        flush=True,
                    )
    print("\n".join(summary(found)))


if __name__ == "__main__":
    main()
