"""Levels: objectives of variables that can be set to some values only, for searches that know intervals.

A set of altered variables of which some have levels is replaced by narrower ones, with the same objective:

    all have levels     every combination is evaluated in one batch, and each case keeps the one with the
                        largest `level_value` that the objective accepts (or the largest, if it accepts none):
                        a box that is this point
    some have levels    one box for every combination, in which the variables with levels are held and the
                        others keep their bounds; searches take the best box, as they take the best set

So every search returns a level, and its objective appraises that level. Objectives whose search does not look
for the largest value (`enumerable` is false: a cost under a chance constraint, information) have one box for
every combination also where all variables have levels.

Source: exhaustive search; ours.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.rehearsal_task import SEARCHES

if TYPE_CHECKING:
    from rehearsal_torch.objectives.objective import AlterationObjective

T = TypeVar("T", bound="AlterationObjective")
AT_ONCE = 64


def levelled(sets: Sequence[T]) -> tuple[T, ...]:
    """The objectives that a search is given in place of those of whole sets; those without levels stay.

    Raises:
        ValueError: if a set has too many combinations to be searched one by one.
    """
    return tuple(each for one in sets for each in (_boxes(one) if one.levels else (one,)))


def _boxes(one: T) -> Iterator[T]:
    names = list(one.levels)
    places = [one.names.index(name) for name in names]
    values = list(product(*one.levels.values()))
    if one.enumerable and len(places) == len(one.names):
        order = [names.index(name) for name in one.names]
        best = highest(one, one.lower.new_tensor(values)[:, order])
        yield one.within(best, best, {})
        return
    if len(values) > SEARCHES:
        raise ValueError(
            f"{', '.join(one.names)}: {len(values)} combinations of values; {type(one).__name__} is searched "
            f"for each by itself, at most {SEARCHES}: offer fewer values, or use a method that maximises the "
            "probability of success, such as decision=cme"
        )
    for combination in values:
        lower, upper = one.lower.clone(), one.upper.clone()
        lower[:, places] = upper[:, places] = one.lower.new_tensor(combination)
        yield one.within(lower, upper, dict(zip(names, combination, strict=True)))


@torch.no_grad()
def highest(one: "AlterationObjective", actions: Tensor) -> Tensor:
    """The best acceptable of some actions in each case, or the best if none is, (c, k) -> (B, k); the first
    one among equals.
    """
    parts = [part.unsqueeze(1).expand(-1, len(one.cases), -1) for part in actions.split(AT_ONCE)]
    values = torch.cat([ranked(one.level_value(part)) for part in parts])
    order = values.argsort(dim=0, descending=True, stable=True)
    best, found = actions[order[0]], torch.zeros(order.shape[1], dtype=torch.bool, device=order.device)
    # From the best down, as acceptance may cost more than a value.
    for places in order.split(AT_ONCE):
        ranking = actions[places]
        accepted = one.acceptable(ranking).to(found.device)
        first = accepted.to(torch.long).argmax(0)
        new = accepted.any(0) & ~found
        chosen = ranking[first, torch.arange(len(found), device=order.device)]
        best, found = torch.where(new.unsqueeze(-1), chosen, best), found | new
        if bool(found.all()):
            break
    return best
