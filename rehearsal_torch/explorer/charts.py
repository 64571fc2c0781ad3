"""The numbers of the page's pictures: the probability over each action, and outcomes beside the region.

Curves are claims of `api.what_if`, point by point, with the interval of each; a point outside the data has
none. Below them stand the observations, counted in bins; bins with 1 to 4 rows are not told apart, so that no
row can be read off.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.api.rehearsal_model import RehearsalModel
from rehearsal_torch.api.what_if import WhatIf, what_ifs
from rehearsal_torch.data.codings.one_hot_actions import in_indicators
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.evaluation.claim_curves import EACH, MOST, POINTS, bins
from rehearsal_torch.evaluation.claim_curves import places as places_of
from rehearsal_torch.reporting.page.data_card import weighted_sum
from rehearsal_torch.surrogates.outcome_draws import OutcomeDraws


def curves(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], withheld: Any
) -> list[dict[str, Any]]:
    """For each action of a setting, the claim over its range with the others as they are set.

    Args:
        case: The case, with its bounds.
        setting: Values for all variables of a candidate set; of classes their places.
        withheld: Says of a claim whether its number is withheld.

    Returns:
        Name, places ``at``, ``point``, ``lower`` and ``upper`` (None where withheld), whether only
        ``levels`` may be set, the ``texts`` of the codes 0, 1, ... if there are some, and the observations in
        ``bins``.
    """
    names, coded = list(setting)[:MOST], model.task.coded
    levelled = {*case.levels, *(coding.name for coding in case.codings if coding.reference is not None)}
    count = max(5, min(EACH, POINTS // len(names)))
    places = {name: places_of(case, name, count) for name in names}
    asked = [
        in_indicators({**setting, name: value}, case.codings) for name in names for value in places[name]
    ]
    claims = iter(what_ifs(model, case, asked))
    return [
        {
            "name": name,
            "at": places[name],
            "levels": name in levelled,
            "texts": list(coded[name].levels) if name in coded else None,
            **_ends([next(claims) for _ in places[name]], withheld),
            "bins": bins(model.surrogate, case, name),
        }
        for name in names
    ]


def densities(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], before: bool
) -> dict[str, Any] | None:
    """The outcomes that the model expects after a setting, and with no action, beside the desired region.

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
        "share": round(after.share(task.region), 4),
        "share_before": None if none is None else round(none.share(task.region), 4),
        "coordinates": [
            _density(after, none, coordinate, task.outcomes, bounds)
            for coordinate, bounds in enumerate(after.bounds(task.region))
        ],
    }


def _ends(claims: Sequence[WhatIf], withheld: Any) -> dict[str, list[float | None]]:
    shown = [None if withheld(claim) else claim.estimate for claim in claims]
    return {
        part: [None if claim is None else getattr(claim, part) for claim in shown]
        for part in ("point", "lower", "upper")
    }


def _density(
    after: OutcomeDraws,
    before: OutcomeDraws | None,
    coordinate: int,
    outcomes: Sequence[str],
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """One coordinate: its name, its bounds, and the densities over the same bins."""
    row = after.basis[coordinate]
    sign = -1.0 if float(row[row.nonzero()[0]]) < 0 else 1.0
    weights = {name: sign * float(weight) for name, weight in zip(outcomes, row, strict=True) if weight}
    lower, upper = bounds if sign > 0 else (-bounds[1], -bounds[0])
    draws = [
        sign * outcome.values[:, coordinate].to("cpu", torch.float64)
        for outcome in (after, before)
        if outcome is not None
    ]
    ends = torch.tensor([0.005, 0.995], dtype=torch.float64)
    quantiles = torch.stack([torch.quantile(outcome, ends) for outcome in draws])
    low, high = float(quantiles[:, 0].min()), float(quantiles[:, 1].max())
    finite_bounds = [bound for bound in (lower, upper) if math.isfinite(bound)]
    # A bound that is far from all draws is not drawn in: it would leave them a line.
    near = [bound for bound in finite_bounds if low - (high - low) <= bound <= high + (high - low)]
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
        "after": _heights(draws[0], count, low, high, width),
        "before": _heights(draws[1], count, low, high, width) if len(draws) > 1 else None,
    }


def _heights(values: Tensor, count: int, low: float, high: float, width: float) -> list[float]:
    """The share of the draws per unit, in bins."""
    inside = values[(values >= low) & (values <= high)]
    return (torch.histc(inside, count, low, high) / (len(values) * width)).tolist()
