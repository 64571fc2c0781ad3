"""What decision=auto takes on worlds that know the truth, beside every method that it compares.

    python benchmarks/method_choice.py --worlds lin_syn1 non_syn2 bank --seeds 790 791 792 793

For every world and seed the methods are compared on the world's rows (`method_choice`), one is taken, and
each is fitted to all rows and decides for the world's cases. Written are one row per world and seed: the mean
true probability of a desired outcome after the decisions of each method, of no action and of the best
alteration, which method was taken, and its value in the comparison.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.method_choice import SIMPLEST_FIRST, choose, with_method
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.training.surrogate_fit import fit

METHODS = tuple(SIMPLEST_FIRST)
FIELDS = ("world", "seed", "chosen", "best", "value", "bias", *METHODS, "optimum", "seconds")


def run(world: str, seed: int, rows: int, cases: int, limits: Sequence[str]) -> dict[str, Any]:
    """One world and seed."""
    sizes = [f"dataset.size.rows={rows}", f"dataset.size.contexts={cases}"]
    typed = [f"dataset={world}", f"seed={seed}", "decision=auto", *sizes, *limits]
    config, _ = composed(typed, multirun=False)
    problem = problem_of(config)
    began = time.process_time()
    choice = choose(config, problem)
    spent = time.process_time() - began
    true: dict[str, float] = {}
    for name in METHODS:
        made = build(with_method(config, name), problem)
        model = fit(made.surrogate(), problem.observations())
        decided = rounds(problem, model, made.objective, made.search, seed=seed)
        scores = [each.score for each in decided]
        true[name] = statistics.fmean(score["probability"] for score in scores)
        best = statistics.fmean(score["oracle"] for score in scores)
    value = choice.standing(choice.chosen).value
    facts = {"world": world, "seed": seed, "chosen": choice.chosen, "best": choice.best}
    return {**facts, "value": value, "bias": choice.bias, **true, "optimum": best, "seconds": spent}


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """One line per world: the mean truth of each method, of what was taken, and of the best in hindsight."""
    lines = [f"{'world':<10} {'auto':>6} " + " ".join(f"{name[:9]:>9}" for name in METHODS) + "   took"]
    for world in dict.fromkeys(row["world"] for row in rows):
        mine = [row for row in rows if row["world"] == world]
        taken = statistics.fmean(row[row["chosen"]] for row in mine)
        means = " ".join(f"{statistics.fmean(row[name] for row in mine):9.3f}" for name in METHODS)
        lines.append(f"{world:<10} {taken:6.3f} {means}   {', '.join(row['chosen'] for row in mine)}")
    return lines


def main() -> None:
    """Runs the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=["lin_syn1", "non_syn2", "bank"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[790, 791, 792, 793])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--limits", nargs="*", default=[], help="such as choose.repeats=2 choose.cases=10")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with (asked.out / "method_choice.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        # Seed by seed, so that a run that is ended early has the same seeds in every world.
        for seed in asked.seeds:
            for world in asked.worlds:
                row = run(world, seed, asked.rows, asked.cases, asked.limits)
                found.append(row)
                writer.writerow(row)
                stream.flush()
                true = ", ".join(f"{name} {row[name]:.3f}" for name in METHODS)
                print(
                    f"{world} {seed}: took {row['chosen']} (best {row['best']}), value {row['value']:.3f}, "
                    f"bias {row['bias']:.3f}, {row['seconds']:.0f} s; true: {true}; optimum "
                    f"{row['optimum']:.3f}",
                    flush=True,
                )
    print("\n".join(summary(found)))


if __name__ == "__main__":
    main()
