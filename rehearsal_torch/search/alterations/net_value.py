"""Decisions where costs count: the alteration with the largest net value, whatever the method's own search.

The method's own search first decides as if nothing cost anything. Its decision is one start of a climb
(`search.alterations.line_climb`) of the net value (`objectives.net_value`) in every candidate set; the others
are keeping everything as it is, half-way between the two, and the best of the objective's own starts; in a
set that it has not chosen the most probable of these takes its place. Sets
whose actions all have levels are decided by evaluating every combination; beside levels, the other actions
are searched for each of them. The best set of a case is selected, and judged, as in every search.

Cases in which nothing costs anything, or no worth is known, keep the decision of the method's own search, to
the last bit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.costs.action_cost import weighing
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.levels import every_combination, held, highest
from rehearsal_torch.objectives.net_value import NetValue
from rehearsal_torch.objectives.objective import AlterationObjective, class_of, settings_of
from rehearsal_torch.search.alterations.line_climb import Value, climb, evaluated
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.search import BatchSearch, NoAction, Search, chosen, in_time

STARTS, LINE = 24, 17


def check_worth(objective: Callable[..., Any], search: Search[Any], name: str = "this method") -> None:
    """Refuses methods that cannot weigh costs against the worth of a desired outcome.

    Args:
        objective: Builds the objective.
        name: The method's name in messages.

    Raises:
        ValueError: if the objective's values are no probabilities of a desired outcome, or the search looks
            for something else.
    """
    if isinstance(search, NoAction):
        return
    # The objective of several models has that of one of them among its settings.
    made = class_of(settings_of(objective).get("member", objective))
    if made is not None and issubclass(made, AlterationObjective) and made.of_success and search.weighs:
        return
    told = "an objective of its own" if made is None else made.__name__
    raise ValueError(
        "worth is weighed against costs by methods that maximise the probability of a desired outcome; "
        f"{name} ({told} with {type(search).__name__}) looks for something else: leave worth out, so that "
        "costs are told and do not count, or choose another method, such as cme_stack, cme, care or "
        "outcome_regression"
    )


def decided(search: BatchSearch[Any], objective: Any) -> list[Decision]:
    """The decisions of a search, by net value where costs count.

    Args:
        search: The method's own search.
        objective: What it maximises in B cases.

    Raises:
        ValueError: if costs count in a case, and the method cannot weigh them.
    """
    if (
        not isinstance(objective, Candidates)
        or isinstance(search, NoAction)
        or not any(weighing(each) for each in objective.cases)
    ):
        return search.batch_search(objective)
    check_worth(type(objective.whole[0]), search)
    budget = Budget(search.budget_s)
    alone = search.batch_search(objective)
    found = _largest(objective, alone, budget, search.declines)
    return [
        best if weighing(case) else own for case, own, best in zip(objective.cases, alone, found, strict=True)
    ]


@torch.no_grad()
def _largest(
    objective: Candidates[AlterationObjective], alone: Sequence[Decision], budget: Budget, declines: bool
) -> list[Decision]:
    """The decisions with the largest net value."""
    boxes = [
        box
        for one in objective.whole
        for box in (held(one) if one.levels and len(one.levels) < len(one.names) else (one,))
    ]
    searched: Candidates[AlterationObjective] = Candidates(
        objective.cases, objective.whole, objective.surrogate
    )
    searched.sets = tuple(boxes)
    settings = [_setting(each) for each in alone]
    actions, values, accepted = [], [], []
    for box in in_time(boxes, budget):
        best = _best(box, [each if tuple(each) == box.names else {} for each in settings], budget)
        actions.append(best)
        values.append(NetValue.of(box).compared(best))
        accepted.append(box.acceptable(best).to(values[-1].device))
    facts = [{"without_costs": each} for each in settings]
    stacked, may = torch.stack(values), torch.stack(accepted)
    return chosen(searched, actions, stacked, "net_value", budget, facts, declines, may)


def _setting(decision: Decision) -> dict[str, float]:
    """What a decision sets, or would have set."""
    if decision.alteration is None:
        return dict(decision.trace.get("would_set") or {})
    return dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))


def _best(one: AlterationObjective, own: Sequence[dict[str, float]], budget: Budget) -> Tensor:
    """The best actions of one set or box, (B, k): those that the objective accepts, or the best if it accepts
    none.
    """
    if one.levels:
        return highest(one, every_combination(one), NetValue.of(one))
    table = one.tabulated()
    value, origin = NetValue.of(table), NetValue.of(one).costs.origin.to(one.lower)
    starts = one.starts(STARTS).to(one.lower)
    given = starts[evaluated(table.probability, starts).argmax(0), range(starts.shape[1])]
    for index, setting in enumerate(own):
        if setting:
            given[index] = given.new_tensor([setting[name] for name in one.names])
    given = one.project(given)
    keep = one.project(torch.where(origin.isnan(), given, origin))
    promising = starts[evaluated(value, starts).argmax(0), range(starts.shape[1])]
    begin = torch.stack([keep, given, (keep + given) / 2, promising])
    ends, values = climb(value, begin, one.lower, one.upper, origin, budget)
    return _accepted(one, value, torch.cat([ends, torch.stack([given, keep])]), values, keep)


def _accepted(one: AlterationObjective, value: Value, ends: Tensor, values: Tensor, keep: Tensor) -> Tensor:
    """The best acceptable of some points (n, B, k), of which the first have known values; where none is
    accepted, the best acceptable on the way from them to what is kept; else the best.
    """
    known = torch.cat([values, evaluated(value, ends[len(values) :])])
    accepted = one.acceptable(ends).to(known.device)
    if not bool(accepted.any(0).all()):
        top = ends[known.argmax(0), range(ends.shape[1])]
        shares = torch.linspace(0, 1, LINE, dtype=ends.dtype, device=ends.device)[:, None, None]
        way = top + shares * (keep - top)
        # Only where no end point is accepted: cases beside others are decided as if alone.
        useful = one.acceptable(way).to(known.device) & ~accepted.any(0)
        more = evaluated(value, way).masked_fill(~useful, -math.inf)
        ends, known, accepted = (
            torch.cat([ends, way]),
            torch.cat([known, more]),
            torch.cat([accepted, useful]),
        )
    allowed = torch.where(accepted.any(0), accepted, torch.ones_like(accepted))
    best = known.masked_fill(~allowed, -math.inf).argmax(0)
    return ends[best, torch.arange(ends.shape[1], device=ends.device)]
