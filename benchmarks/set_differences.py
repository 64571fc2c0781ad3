"""How often the interval of a difference holds the truth, where two alterations set different variables.

`RehearsalModel.compare` takes alterations of two candidate sets. With ``care`` both follow from the same
draws of the equations; elsewhere each set has a regression of its own, and the interval is Bonferroni's
(`objectives.gaussian_success`). In each case, two sets and a value of each of their variables are drawn at
random, so that nothing is chosen by what the method claims of it; the world knows the true difference.

Printed are, for each world and method, the share of 95 % intervals that hold the truth, their mean width, how
many are told from zero, and how many of these have the wrong sign.

Run: python benchmarks/set_differences.py [--rows 300] [--cases 8] [--seeds 940 ... 947] [--methods care ...]
"""

import argparse
import time
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from rehearsal_torch.api.fit_and_decide import learnt
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.objectives.gaussian_success import between_sets
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.spaces.box import Alteration

WORLDS = ("bermuda", "market", "ride_hailing")
METHODS = ("care", "cme", "outcome_regression")
# Truths of nonlinear worlds are simulated.
ERROR = 1e-3


def differences(world: str, method: str, seed: int, rows: int, cases: int) -> list[dict[str, Any]]:
    """The comparisons of one fit, one in each case.

    Args:
        world: The name of a data set whose task has several candidate sets.
        method: The name of a file of ``conf/decision``.
        seed: Of the world, the fit and the draws.
        rows: Rows that the method is fitted to.
        cases: How many cases.
    """
    sizes = [f"dataset.size.rows={rows}", f"dataset.size.contexts={cases}"]
    typed = [f"dataset={world}", f"decision={method}", f"seed={seed}", *sizes]
    config, _ = composed(typed, multirun=False)
    problem = problem_of(config)
    chosen = build(config, problem)
    surrogate, draws, found = learnt(chosen), np.random.default_rng(seed), []
    for index in range(problem.count()):
        case, sets = problem.case(index), problem.task.candidates
        torch.manual_seed(seed)
        made = {each.names: each for each in objective_for(chosen.objective, surrogate, [case]).whole}
        named = [sets[place] for place in draws.permutation(len(sets))[:2]]
        values = [[float(draws.uniform(*case.feasible[name])) for name in each] for each in named]
        at = [torch.tensor([each], dtype=torch.float64) for each in values]
        known = between_sets(made[named[0]], at[0], made[named[1]], at[1])
        if known is None:
            continue
        claim, basis = known
        truths = [
            problem.score(case, Decision(Alteration(names, row[0]), 0.0))["probability"]
            for names, row in zip(named, at, strict=True)
        ]
        ((first, second),) = pairwise(truths)
        facts = {"lower": claim.lower, "upper": claim.upper, "true": first - second, "basis": basis}
        found.append({"world": world, "method": method, "seed": seed, "case": index, **facts})
    return found


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """One line of the table: of how many, held, width, told from zero, wrong signs."""
    held = [row["lower"] - ERROR <= row["true"] <= row["upper"] + ERROR for row in rows]
    width = np.mean([row["upper"] - row["lower"] for row in rows])
    told = [row for row in rows if row["lower"] > 0 or row["upper"] < 0]
    wrong = sum((row["lower"] > 0) != (row["true"] > 0) for row in told)
    return f"{len(rows):4d} {sum(held):5d} {np.mean(held):6.3f} {width:6.3f} {len(told):5d} {wrong:6d}"


def main() -> None:
    """Runs the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(940, 948)))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--cases", type=int, default=8)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'world':<13} {'method':<19} {'of':>4} {'held':>5} {'share':>6} {'width':>6} {'told':>5}  wrong")
    for method in asked.methods:
        every: list[dict[str, Any]] = []
        began = time.process_time()
        for world in asked.worlds:
            rows = [
                row
                for seed in asked.seeds
                for row in differences(world, method, seed, asked.rows, asked.cases)
            ]
            every += rows
            if rows:
                print(f"{world:<13} {method:<19} {summary(rows)}", flush=True)
        if every:
            seconds = time.process_time() - began
            print(f"{'all':<13} {method:<19} {summary(every)}   {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
