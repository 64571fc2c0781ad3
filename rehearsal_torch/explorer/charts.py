"""Data of the charts: the claimed probability over each action, and outcomes beside the desired region.

Curves are claims of `api.what_if`, point by point, with the interval of each; a point outside the data has
none. Below them stand the observations as a histogram; a bin with 1 to 4 rows has no
count, so that no row can be read off.
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
from rehearsal_torch.evaluation.claim_curves import bins
from rehearsal_torch.evaluation.claim_curves import places as places_of
from rehearsal_torch.reporting.page.data_card import weighted_sum
from rehearsal_torch.surrogates.outcome_draws import OutcomeDraws

# Places of a curve, at most.
POINTS = 17


def curve(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], name: str, withheld: Any
) -> dict[str, Any]:
    """The claim over the range of one action of a setting (of classes its places), the others fixed.

    Returns:
        Name, places ``at``, ``point``, ``lower`` and ``upper`` (None where `withheld` says so of a claim),
        whether only ``levels`` may be set, the ``texts`` of the codes 0, 1, ... if any, and ``bins``.
    """
    levelled = {*case.levels, *(coding.name for coding in case.codings if coding.reference is not None)}
    places = places_of(case, name, POINTS)
    settings = [in_indicators({**setting, name: value}, case.codings) for value in places]
    claims = what_ifs(model, case, settings)
    return {
        "name": name,
        "at": places,
        "levels": name in levelled,
        "texts": list(coding.levels) if (coding := model.task.coded.get(name)) else None,
        **_estimate_columns(claims, withheld),
        "bins": bins(model.surrogate, case, name),
    }


def densities(
    model: RehearsalModel, case: RehearsalCase, setting: Mapping[str, float], before: bool
) -> dict[str, Any] | None:
    """Histograms of the outcomes that the model predicts after a setting, and, if `before`, with no action.

    Returns:
        The share of draws in the desired region, and for each coordinate its label, bounds, edges and
        densities; None if the model draws no outcomes.
    """
    task, names = model.task, tuple(setting)
    (context,) = task.given([case])
    values = torch.tensor([setting[name] for name in names], dtype=torch.float64)
    after = model.surrogate.outcome_draws(names, context, values)
    if after is None:
        return None
    no_action = model.surrogate.outcome_draws((), context, values[:0]) if before else None
    return {
        "share": round(after.share(task.region), 4),
        "share_before": None if no_action is None else round(no_action.share(task.region), 4),
        "coordinates": [
            _density(after, no_action, coordinate, task.outcomes, bounds)
            for coordinate, bounds in enumerate(after.bounds(task.region))
        ],
    }


def _estimate_columns(claims: Sequence[WhatIf], withheld: Any) -> dict[str, list[float | None]]:
    estimates = [None if withheld(claim) else claim.estimate for claim in claims]
    return {
        part: [None if claim is None else getattr(claim, part) for claim in estimates]
        for part in ("point", "lower", "upper")
    }


def _density(
    after: OutcomeDraws,
    before: OutcomeDraws | None,
    coordinate: int,
    outcomes: Sequence[str],
    bounds: tuple[float, float],
) -> dict[str, Any]:
    """The histograms of one coordinate over the same bins."""
    row = after.basis[coordinate]
    sign = -1.0 if float(row[row.nonzero()[0]]) < 0 else 1.0
    weights = {name: sign * float(weight) for name, weight in zip(outcomes, row, strict=True) if weight}
    lower, upper = bounds if sign > 0 else (-bounds[1], -bounds[0])
    draws = [
        sign * outcome.values[:, coordinate].to("cpu", torch.float64)
        for outcome in (after, before)
        if outcome is not None
    ]
    probabilities = torch.tensor([0.005, 0.995], dtype=torch.float64)
    quantiles = torch.stack([torch.quantile(outcome, probabilities) for outcome in draws])
    low, high = float(quantiles[:, 0].min()), float(quantiles[:, 1].max())
    finite_bounds = [bound for bound in (lower, upper) if math.isfinite(bound)]
    # A bound far from all draws is left out: it would squeeze them into a line.
    drawn_bounds = [bound for bound in finite_bounds if low - (high - low) <= bound <= high + (high - low)]
    low, high = min([low, *drawn_bounds]), max([high, *drawn_bounds])
    margin = 0.03 * (high - low) or 1.0
    low, high = low - margin, high + margin
    count = 48
    width = (high - low) / count
    return {
        "label": weighted_sum({name: round(weight, 6) for name, weight in weights.items()}),
        "lower": lower if math.isfinite(lower) else None,
        "upper": upper if math.isfinite(upper) else None,
        "edges": torch.linspace(low, high, count + 1, dtype=torch.float64).tolist(),
        "after": _bin_densities(draws[0], count, low, high, width),
        "before": _bin_densities(draws[1], count, low, high, width) if len(draws) > 1 else None,
    }


def _bin_densities(values: Tensor, count: int, low: float, high: float, width: float) -> list[float]:
    """The density of draws in equal bins."""
    inside = values[(values >= low) & (values <= high)]
    return (torch.histc(inside, count, low, high) / (len(values) * width)).tolist()
