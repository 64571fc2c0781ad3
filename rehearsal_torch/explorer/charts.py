"""The numbers of the page's pictures: the probability over each action, and outcomes beside the region.

Curves are claims of `verbs.what_if`, point by point, with the interval of each; a point outside the data has
none. Below them stand the observations, counted in bins; bins with 1 to 4 rows are not told apart, so that no
row can be read off.

Source: ours.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.reporting.page.question import weighted_sum
from rehearsal_torch.surrogates.outcome_draws import OutcomeDraws
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.verbs.rehearsal_model import RehearsalModel
from rehearsal_torch.verbs.what_if import WhatIf, what_ifs

# Points of all curves together, points of one of them, and actions that have one.
POINTS, EACH, MOST = 66, 33, 12
BINS, FEWEST = 12, 5


def curves(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], withheld: Any
) -> list[dict[str, Any]]:
    """For each action of a setting, the claim over its range with the others as they are set.

    Args:
        model: The fitted method.
        case: The case, with its bounds.
        setting: Values for all variables of a candidate set.
        withheld: Says of a claim whether its number is withheld.

    Returns:
        Name, places ``at``, ``point``, ``lower`` and ``upper`` (None where withheld), whether only
        ``levels`` may be set, and the observations in ``bins``.
    """
    names = list(setting)[:MOST]
    count = max(5, min(EACH, POINTS // len(names)))
    places = {name: _places(case, name, count) for name in names}
    asked = [{**setting, name: value} for name in names for value in places[name]]
    found = iter(what_ifs(model, case, asked))
    return [
        {
            "name": name,
            "at": places[name],
            "levels": name in case.levels,
            **_ends([next(found) for _ in places[name]], withheld),
            "bins": bins(model.surrogate, name, *case.feasible[name]),
        }
        for name in names
    ]


def bins(surrogate: RehearsalSurrogate, name: str, lower: float, upper: float) -> dict[str, Any] | None:
    """How many of the observations lie where, within a range; None if the model holds no rows.

    Args:
        surrogate: The fitted model, which keeps at most 2000 evenly spaced rows.
        name: An action.
        lower: The lower end of the range.
        upper: The upper end.

    Returns:
        Edges, and counts: None for 1 to 4 rows.
    """
    overlap = surrogate.overlap
    if not overlap.known or not lower < upper:
        return None
    place = overlap.names.index(name)
    values = overlap.location[place] + overlap.scale[place] * overlap.rows[:, place]
    inside = values[(values >= lower) & (values <= upper)].to("cpu", torch.float64)
    edges = torch.linspace(lower, upper, BINS + 1, dtype=torch.float64)
    counts = torch.histc(inside, BINS, lower, upper)
    return {
        "edges": edges.tolist(),
        "counts": [int(each) if each == 0 or each >= FEWEST else None for each in counts],
        "rows": len(values),
    }


def densities(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], before: bool
) -> dict[str, Any] | None:
    """The outcomes that the model expects after a setting, and with no action, beside the desired region.

    Args:
        model: The fitted method.
        case: The case.
        setting: Values for all variables of a candidate set.
        before: Whether to show those of no action, too.

    Returns:
        The weight of the draws in the claim, their shares in the region, and for each coordinate its label,
        bounds, edges and densities; None if the model has no draws of the outcomes.
    """
    task, names = model.task, tuple(setting)
    (given,) = task.given([case])
    values = torch.tensor([setting[name] for name in names], dtype=torch.float64)
    after = model.surrogate.outcome_draws(names, given, values)
    if after is None:
        return None
    none = model.surrogate.outcome_draws((), given, values[:0]) if before else None
    return {
        "weight": after.weight,
        "share": round(after.share(task.region), 4),
        "share_before": None if none is None else round(none.share(task.region), 4),
        "coordinates": [
            _density(after, none, place, task.outcomes, bounds)
            for place, bounds in enumerate(after.bounds(task.region))
        ],
    }


def _places(case: RehearsalCase, name: str, count: int) -> list[float]:
    """The values of an action at which its curve is asked."""
    lower, upper = case.feasible[name]
    levels = case.levels.get(name)
    if levels is not None:
        every = torch.linspace(0, len(levels) - 1, min(count, len(levels))).round().long().tolist()
        return [float(levels[place]) for place in every]
    return torch.linspace(lower, upper, count if lower < upper else 1, dtype=torch.float64).tolist()


def _ends(found: Sequence[WhatIf], withheld: Any) -> dict[str, list[float | None]]:
    shown = [None if withheld(each) else each.estimate for each in found]
    return {
        part: [None if each is None else getattr(each, part) for each in shown]
        for part in ("point", "lower", "upper")
    }


def _density(
    after: OutcomeDraws,
    before: OutcomeDraws | None,
    place: int,
    outcomes: Sequence[str],
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """One coordinate: its name, its bounds, and the densities over the same bins."""
    row = after.basis[place]
    sign = -1.0 if float(row[row.nonzero()[0]]) < 0 else 1.0
    weights = {name: sign * float(weight) for name, weight in zip(outcomes, row, strict=True) if weight}
    lower, upper = bounds if sign > 0 else (-bounds[1], -bounds[0])
    own = [
        sign * each.values[:, place].to("cpu", torch.float64) for each in (after, before) if each is not None
    ]
    ends = torch.tensor([0.005, 0.995], dtype=torch.float64)
    quantiles = torch.stack([torch.quantile(each, ends) for each in own])
    low, high = float(quantiles[:, 0].min()), float(quantiles[:, 1].max())
    known = [bound for bound in (lower, upper) if math.isfinite(bound)]
    # A bound that is far from all draws is not drawn in: it would leave them a line.
    near = [bound for bound in known if low - (high - low) <= bound <= high + (high - low)]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.03 * (high - low) or 1.0
    low, high = low - margin, high + margin
    count = 48
    width = (high - low) / count
    return {
        "label": weighted_sum({name: round(weight, 6) for name, weight in weights.items()}),
        "lower": lower if math.isfinite(lower) else None,
        "upper": upper if math.isfinite(upper) else None,
        "edges": torch.linspace(low, high, count + 1, dtype=torch.float64).tolist(),
        "after": _heights(own[0], count, low, high, width),
        "before": _heights(own[1], count, low, high, width) if len(own) > 1 else None,
    }


def _heights(values: Tensor, count: int, low: float, high: float, width: float) -> list[float]:
    """The share of the draws per unit, in bins."""
    inside = values[(values >= low) & (values <= high)]
    return (torch.histc(inside, count, low, high) / (len(values) * width)).tolist()
