"""How often the claimed gain over present values holds the truth, in worlds that know it.

Each case states a present value of every action: that of a random row, within the bounds. The method
decides, and claims an estimate, one for leaving things as they are, and the gain, their difference, each
with a 95 % interval. The world knows all three. With `--claims cross_fitted`, estimate and gain are those
from rows that did not choose (`claims`).

Run: python benchmarks/present_values.py [--rows 300] [--seeds 785,786,787,788] [--methods care,cme]
"""

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from rehearsal_torch.api.fit_and_decide import learnt
from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.methods.hydra_config import composed, with_settings
from rehearsal_torch.methods.run_parts import build, cross_fitted_claims
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.problems.cases.linear_examples import LinSyn1
from rehearsal_torch.problems.cases.nonlinear_examples import Loan, NonSyn2
from rehearsal_torch.problems.world_size import SampleSize

WORLDS = {"bank": Loan, "lin_syn1": LinSyn1, "non_syn2": NonSyn2}
METHODS = ("outcome_regression", "care")
# Truths of nonlinear worlds are simulated.
ERROR = 1e-3


def decided(
    world: object, name: str, method: str, seed: int, claims: str
) -> tuple[list[RehearsalCase], list[Decision]]:
    """The cases of a world with present values, and the decisions of a method."""
    run = build(with_settings(composed("auf", dataset=name, decision=method), {"seed": seed}), world)
    surrogate = learnt(run)
    draws, table = np.random.default_rng(seed), world.observations()
    cases = []
    for index in range(world.count()):
        case, row = world.case(index), int(draws.integers(len(table)))
        present = {
            action: float(np.clip(table.columns((action,))[row, 0], *ends))
            for action, ends in case.feasible.items()
        }
        cases.append(replace(case, present=present))
    torch.manual_seed(seed)
    made = run.search.batch_search(objective_for(run.objective, surrogate, cases))
    return cases, cross_fitted_claims(run)(cases, made) if claims == "cross_fitted" else made


def holds(claim: Estimate | None, truth: float) -> bool:
    """Whether an interval holds the truth."""
    return claim is not None and claim.lower - ERROR <= truth <= claim.upper + ERROR


def measured(name: str, method: str, rows: int, seeds: Sequence[int], claims: str) -> str:
    """One line of the table."""
    lines = []
    for seed in seeds:
        world = WORLDS[name](size=SampleSize(rows, 20), seed=seed)
        for case, one in zip(*decided(world, name, method, seed, claims), strict=True):
            if one.alteration is None or one.unchanged is None:
                continue
            now = Decision(case.kept(one.alteration.names), 0.0)
            after, before = (world.score(case, each)["probability"] for each in (one, now))
            sure = one.gain is not None and one.gain.lower > 0
            lines.append(
                (
                    holds(one.gain, after - before),
                    holds(one.unchanged, before),
                    holds(one.estimate, after),
                    after > before,
                    sure,
                    sure and after <= before,
                )
            )
    share = np.mean(lines, axis=0) if lines else np.full(6, np.nan)
    cells = [f"{100 * value:.0f}%" for value in share[:5]]
    return f"| {name} | `{method}` | {len(lines)} | {' | '.join(cells)} | {sum(each[5] for each in lines)} |"


def main() -> None:
    """Prints the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--rows", type=int, default=300)
    given.add_argument("--seeds", default="785,786,787,788")
    given.add_argument("--methods", default=",".join(METHODS))
    given.add_argument("--claims", default="in_sample", choices=("in_sample", "cross_fitted"))
    arguments = given.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(
        "| world | method | n | gain holds | unchanged holds | estimate holds | truly better | told "
        "| of these wrong |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    seeds = [int(each) for each in arguments.seeds.split(",")]
    for name in WORLDS:
        for method in arguments.methods.split(","):
            print(measured(name, method, arguments.rows, seeds, arguments.claims), flush=True)


if __name__ == "__main__":
    main()
