"""What missing cells do to claims: complete cases and imputed tables, in worlds that know the truth.

A share of the cells is missing, the more often the larger a driver: the context, in which case all other
columns have gaps, or the first outcome, in which case all but the context and that outcome do. The method is
fitted to all rows without gaps, to the complete rows, and to m imputed tables, and decides for the same
cases.

The last column has the seconds of one imputed table.

Run: python benchmarks/missing_cells.py [--method care] [--seeds 795,796,797,798] [--imputations 20]
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from rehearsal_torch.data.imputation import ImputedTable
from rehearsal_torch.data.table import Table
from rehearsal_torch.methods.hydra_config import composed, with_settings
from rehearsal_torch.objectives.imputation_success import ImputedSuccess
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.problems.cases.linear_examples import LinSyn1
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.training.surrogate_fit import fit

WORLDS = {"Lin-Syn1": LinSyn1, "BankExp": Loan}
STEEPNESS = 1.5


def with_gaps(table: Table, spared: Sequence[str], driver: Sequence[str], share: float, seed: int) -> Tensor:
    """The values of a table, (n, d), with NaN where a cell is missing.

    Args:
        table: The table.
        spared: The columns without gaps.
        driver: The columns whose standardised sum raises the probability of a gap.
        share: The mean probability of a gap.
        seed: Seed of the gaps.
    """
    draws, values = np.random.default_rng([seed, 15]), table.values.clone()
    moved = table.columns(tuple(driver)).numpy()
    height = ((moved - moved.mean(0)) / moved.std(0)).sum(1) / np.sqrt(moved.shape[1])
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = 1 / (1 + np.exp(-(middle + STEEPNESS * height)))
        low, high = (middle, high) if chance.mean() < share else (low, middle)
    for place, name in enumerate(table.names):
        if name not in spared:
            values[torch.from_numpy(draws.random(len(values)) < chance), place] = torch.nan
    return values


def parts(method: str, seed: int) -> tuple[Callable[..., RehearsalSurrogate], Callable[..., object]]:
    """The surrogate and the objective of a preset, both as factories."""
    config = with_settings(composed(decision=method), {"seed": seed})
    nodes = {name: OmegaConf.to_container(config[name], resolve=True) for name in ("surrogate", "objective")}
    nodes["surrogate"].pop("task", None)
    made = {name: instantiate({**node, "_partial_": True}, _convert_="all") for name, node in nodes.items()}
    return made["surrogate"], made["objective"]


def measured(
    name: str, method: str, rows: int, seed: int, share: float, imputations: int
) -> dict[tuple[str, str], list[tuple[float, ...]]]:
    """(Driver, treatment) to rows used, claim, truth, whether the interval holds it, its width, and the
    seconds of an imputed table.
    """
    world = WORLDS[name](size=SampleSize(rows, 20), seed=seed)
    task, table = world.task, world.observations()
    cases = [world.case(index) for index in range(world.count())]
    surrogate, objective = parts(method, seed)
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}

    def noted(key: tuple[str, str], learnt: Table) -> None:
        imputed = isinstance(learnt, ImputedTable)
        began = time.process_time()
        # All but the first, which is there already.
        drawn = len(learnt.completed) - 1 if imputed else 1
        seconds = (time.process_time() - began) / drawn if imputed else 0.0
        model = ImputedSurrogate(task, surrogate, learnt.count) if imputed else surrogate(task=task)
        made = partial(ImputedSuccess, member=objective) if imputed else objective
        decisions = ProjectedAscent().batch_search(objective_for(made, fit(model, learnt), cases))
        for case, one in zip(cases, decisions, strict=True):
            if one.alteration is not None:
                truth, claim = world.score(case, one)["probability"], one.estimate
                held = claim.lower <= truth <= claim.upper
                width = claim.upper - claim.lower
                found.setdefault(key, []).append((len(learnt), claim.point, truth, held, width, seconds))

    noted(("nothing", "all rows"), table)
    first = task.outcomes[:1]
    for label, spared, driver in (
        ("context", task.context, task.context),
        ("an outcome", (*task.context, *first), first),
    ):
        gaps = with_gaps(table, spared, driver, share, seed)
        noted((label, "complete"), Table.observed(table.names, gaps[~gaps.isnan().any(1)]))
        noted((label, "imputed"), ImputedTable.of(table.names, gaps, imputations, seed))
    return found


def main() -> None:
    """Prints the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seeds", default="795,796,797,798")
    given.add_argument("--method", default="care")
    given.add_argument("--rows", type=int, default=300)
    given.add_argument("--share", type=float, default=0.15)
    given.add_argument("--imputations", type=int, default=20)
    arguments = given.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print("| world | missing depends on | rows used | how | claimed | true | held | width | seconds |")
    print("|---|---|---:|---|---:|---:|---:|---:|---:|")
    for name in WORLDS:
        every: dict[tuple[str, str], list[tuple[float, ...]]] = {}
        for seed in map(int, arguments.seeds.split(",")):
            one = measured(
                name, arguments.method, arguments.rows, seed, arguments.share, arguments.imputations
            )
            for key, lines in one.items():
                every.setdefault(key, []).extend(lines)
        for (driver, how), lines in every.items():
            used, claim, truth, held, width, seconds = np.mean(np.array(lines, dtype=float), axis=0)
            print(
                f"| {name} | {driver} | {used:.0f} | {how} | {claim:.3f} | {truth:.3f} | {held:.2f} "
                f"| {width:.3f} | {seconds:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
