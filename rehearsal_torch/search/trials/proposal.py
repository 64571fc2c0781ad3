"""The next action to try: of the start design, from a search, or one of many space-filling points.

An action that is pending or has failed is never proposed again, and neither is one outside bounds or limits,
or at none of its levels.

Source: Sobol (1967) and Owen (1998), as in `spaces.candidate_region`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.log import TrialLog
from rehearsal_torch.data.trials.trial import State
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.problems.causal.own_experiments import start_point
from rehearsal_torch.search.search import Search
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.candidate_region import MixedRegion

# Maximum number of points of the start design that are skipped, and number of space-filling points among
# which a new action is chosen.
TRIES = 512


class NothingLeftError(ValueError):
    """All that could be tried waits for its result, or has failed."""


def designed_action(
    task: CausalTask,
    log: TrialLog,
    initial: int,
    seed: int,
    held: Mapping[str, Sequence[float]] | None = None,
) -> Tensor:
    """The next point of the start design, (k,), by the number of the trial; points that are already trials
    are skipped. If all are, as where actions have few levels, completed ones are repeated.

    Args:
        initial: Number of points that the design was planned for.
        held: Actions that are held at one value, see `CausalTask.region`.

    Raises:
        ValueError: if the next 512 points are all pending or have failed, or all are trials already although
            they could differ.
    """
    begun: tuple[State, ...] = ("pending", "failed")
    numbers = range(log.next_id - 1, log.next_id - 1 + TRIES)
    region = task.region(held)
    few = isinstance(region, MixedRegion) and not region.free
    for states in (("completed", *begun), begun) if few else (("completed", *begun),):
        for number in numbers:
            point = start_point(task, number, initial, seed, held)
            if not bool(log.contains(point, *states)):
                return point
    raise ValueError(
        f"nothing is left to try: the next {TRIES} points of the start design are trials already; report "
        "or abandon what is pending"
    )


def another_action(objective: CausalObjective, log: TrialLog, seed: int) -> Tensor:
    """The best of many space-filling points that is neither pending nor failed, (k,); the seed and the
    identity of the round determine the points.

    Raises:
        NothingLeftError: if all of them are pending or failed.
        ValueError: if the best one is infeasible.
    """
    region, width = objective.region(), len(objective.task.actions)
    spread = region.spread(TRIES, round_seed(seed, f"another {objective.case.identity}"))
    points = region.units(spread)
    points = points[~log.contains(points[:, :width], "pending", "failed")]
    if not len(points):
        raise NothingLeftError(
            f"nothing is left to try: all that was found among {TRIES} space-filling points waits for its "
            "result, or has failed; fill in, or tell, the results of what waits, or take it out"
        )
    best = objective.screened(points).nan_to_num(nan=-torch.inf).argmax()
    action = points[best, :width].to("cpu", torch.float64)
    check_settable(objective.task, action, "proposed")
    return action


def searched_action(objective: CausalObjective, search: Search[Any], log: TrialLog, seed: int) -> Tensor:
    """The action that a search finds, (k,); if it is pending or has failed, the best of many space-filling
    points that is neither.

    Raises:
        ValueError: if the search finds no action, or one that cannot be set.
    """
    decision, names = search(objective), objective.task.actions
    if decision.alteration is None:
        raise ValueError(
            "the search found no action to try: "
            f"{decision.reason or type(search).__name__ + ' gave no reason'}"
        )
    setting = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
    missing = [name for name in names if name not in setting]
    if missing:
        raise ValueError(
            f"the search gave no value for {missing}: expected a value for each of {list(names)}; got "
            f"{setting}"
        )
    action = torch.tensor([setting[name] for name in names], dtype=torch.float64)
    check_settable(objective.task, action, "proposed")
    return another_action(objective, log, seed) if bool(log.contains(action, "pending", "failed")) else action


def check_settable(task: CausalTask, action: Tensor, what: str) -> None:
    """Checks that an action (k,), in its units, is finite and within bounds, levels and limits.

    Args:
        what: How the action came about, for the message.

    Raises:
        ValueError: if the action cannot be set.
    """
    try:
        task.check_action(action)
    except ValueError as error:
        raise ValueError(
            f"the action that was {what} cannot be set ({error}): does the table hold values of very "
            "different magnitude?"
        ) from error


def lacking_for_model(table: Table, nodes: Collection[str]) -> str:
    """What a table lacks for fitting a model: ``rows``, ``variation`` (a node is constant so far), or an
    empty string.
    """
    columns = {name: table.unaltered([name]).columns([name]) for name in nodes}
    if min(map(len, columns.values())) < MIN_ROWS:
        return "rows"
    return "variation" if any(bool((column == column[0]).all()) for column in columns.values()) else ""
