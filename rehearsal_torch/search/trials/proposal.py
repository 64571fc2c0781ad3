"""Actions to try next besides what a search finds: points of the start design, and spread points.

No setting that is pending or has failed is proposed again, and nothing is proposed that cannot be set.

Source: Sobol (1967) and Owen (1998), as in `spaces.candidate_region`.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import MIN_ROWS, CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.log import TrialLog
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.problems.causal.start_design import start_point
from rehearsal_torch.seeding import round_seed

# Points of the start design that are passed over at most, and spread points among which one is found that
# nobody has asked for.
TRIES = 512


def designed_action(task: CausalTask, log: TrialLog, initial: int, seed: int) -> Tensor:
    """The next point of the start design, (k,), by the trial's number; points that are trials already are
    passed over.

    Args:
        task: Bounds and limits.
        log: The trials so far.
        initial: How many points the design was planned for.
        seed: Scrambles it.

    Raises:
        ValueError: if the next 512 points are trials already.
    """
    for number in range(log.following - 1, log.following - 1 + TRIES):
        point = start_point(task, number, initial, seed)
        if not bool(log.taken(point, "completed", "pending", "failed")):
            return point
    raise ValueError(
        f"nothing is left to try: the next {TRIES} points of the start design are trials already; report "
        "or abandon what is pending"
    )


def another_action(objective: CausalObjective, log: TrialLog, seed: int) -> Tensor:
    """The best of many spread points that is neither pending nor failed, (k,).

    Args:
        objective: The value of candidates.
        log: The trials so far.
        seed: With the round's identity, decides the points.

    Raises:
        ValueError: if all of them are taken, or the best cannot be set.
    """
    region, width = objective.region(), len(objective.task.actions)
    spread = region.spread(TRIES, round_seed(seed, f"another {objective.case.identity}"))
    points = region.units(spread)
    points = points[~log.taken(points[:, :width], "pending", "failed")]
    if not len(points):
        raise ValueError(
            f"nothing is left to try: {TRIES} spread points are all pending or have failed; report or "
            "abandon what is pending"
        )
    best = objective.screened(points).nan_to_num(nan=-torch.inf).argmax()
    action = points[best, :width].to("cpu", torch.float64)
    check_settable(objective.task, action, "proposed")
    return action


def check_settable(task: CausalTask, action: Tensor, what: str) -> None:
    """Refuses an action that is not finite, or outside bounds and limits: a suggestion is something that can
    be set.

    Raises:
        ValueError: if it cannot be set.
    """
    try:
        task.check_action(action)
    except ValueError as error:
        raise ValueError(
            f"what was {what} cannot be set ({error}): are there values of very different size in the table?"
        ) from error


def lacking_for_model(table: Table, nodes: Collection[str]) -> str:
    """What a table lacks for a model: ``rows``, ``variation`` (a node is constant so far), or nothing."""
    columns = {name: table.unaltered([name]).columns([name]) for name in nodes}
    if min(map(len, columns.values())) < MIN_ROWS:
        return "rows"
    return "variation" if any(bool((column == column[0]).all()) for column in columns.values()) else ""
