"""Levels: objectives of variables that can be set to some values only, for searches that know intervals.

A set of altered variables of which some have levels is replaced by narrower ones, with the same objective:

    all have levels     every combination is evaluated in one batch, and each case keeps the one with the
                        largest `level_value` that the objective accepts (or the largest, if it accepts none):
                        a box that is this point
    some have levels    one box for every combination, in which the variables with levels are held and the
                        others keep their bounds; searches take the best box, as they take the best set

Of the indicators of a variable of classes at most one is 1 in a combination (`codings.class_actions`). So
every search returns a level, or a class, and its objective appraises that level. Objectives whose search does
not look for the largest value (`enumerable` is false: a cost under a chance constraint, information) have one
box for every combination also where all variables have levels.

Source: exhaustive search; ours.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.codings.class_actions import combinations
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
    values = combinations(one.levels, one.cases[0].codings)
    if one.enumerable and len(places) == len(one.names):
        best = highest(one, every_combination(one))
        yield one.within(best, best, {})
        return
    if len(values) > SEARCHES:
        raise ValueError(
            f"{', '.join(one.names)}: {len(values)} combinations of values; {type(one).__name__} is searched "
            f"for each by itself, at most {SEARCHES}: offer fewer values, or use a method that maximises the "
            "probability of success, such as decision=cme"
        )
    yield from held(one)


def held(one: T) -> Iterator[T]:
    """One box for every combination of the levels, in which the variables with levels are held."""
    places = [one.names.index(name) for name in one.levels]
    for combination in combinations(one.levels, one.cases[0].codings):
        lower, upper = one.lower.clone(), one.upper.clone()
        lower[:, places] = upper[:, places] = one.lower.new_tensor(combination)
        yield one.within(lower, upper, dict(zip(one.levels, combination, strict=True)))


def every_combination(one: "AlterationObjective") -> Tensor:
    """All combinations of the levels of a set whose variables all have some, (c, k)."""
    names = list(one.levels)
    order = [names.index(name) for name in one.names]
    return one.lower.new_tensor(combinations(one.levels, one.cases[0].codings))[:, order]


@torch.no_grad()
def highest(
    one: "AlterationObjective", actions: Tensor, value: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """The best acceptable of some actions in each case, or the best if none is, (c, k) -> (B, k); the first
    one among equals.

    Args:
        one: The objective of the set.
        value: What is to be largest, (..., B, k) -> (..., B); None takes `level_value`.
    """
    value = one.level_value if value is None else value
    parts = [part.unsqueeze(1).expand(-1, len(one.cases), -1) for part in actions.split(AT_ONCE)]
    values = torch.cat([ranked(value(part)) for part in parts])
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
