"""Curves of a method's claims over each action, with intervals, and where observations lie.

For a few decisions of a run, those with the largest, the median and the smallest claimed difference, the
probability of a desired outcome over each action that is set, the others as recommended. A point outside the
data, and one that the method refuses, has no number. Beside a curve stand the setting, the present value
where it is known, the claim for no action or the present values, and how many observations lie where: bins
with 1 to 4 rows are not told apart, so that no row can be read off.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch

from rehearsal_torch.claims.abstention_rules import Claimed, claimed
from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.one_hot_actions import in_indicators, in_places, offered_places
from rehearsal_torch.data.decision import CHANCE, Estimate, RehearsalCase
from rehearsal_torch.data.finding import outside
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.run_record import Decided, before, claim
from rehearsal_torch.objectives.objective import Candidates, objective_for
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.seeding import paired_seed, seeded
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

CLAIM, SET, PRESENT, BEFORE, ROWS = "claim", "set", "present", "before", "observations"
# The most points of all curves of a case and of one, actions with one, and decisions; bins of observations,
# the fewest rows of a bin that are told from none, and the bar of a level as a share of the least distance.
POINTS, EACH, MOST, CASES = 66, 33, 12, 3
BINS, FEWEST, BROAD = 12, 5, 0.8


@dataclass(frozen=True)
class ClaimRow:
    """One point of a curve, one mark, or one bin of observations; empty where nothing is known, or withheld.

    Attributes:
        along: The action on the horizontal axis.
        series: "claim", "set", "observations", or "present" and "before", which it is compared with.
        x: The value of the action, of classes their place 0, 1, ...; the left edge of a bin, or its level.
        point: The estimate, or the number of observations.
        lower, upper: The ends of its interval with coverage `level`, or the edges of a bar.
    """

    case: str
    along: str
    series: str
    x: float
    point: float | str = ""
    lower: float | str = ""
    upper: float | str = ""
    level: float | str = ""


def claim_table(
    problem: Problem,
    surrogate: Surrogate,
    objective: Callable[..., Any],
    lines: Sequence[Decided],
    seed: int = 0,
) -> list[dict[str, Any]]:
    """The rows of ``claims.csv``; none without recommendations, or estimates for given alterations."""
    if not isinstance(surrogate, RehearsalSurrogate) or problem.kind != "rehearse":
        return []
    rows: list[ClaimRow] = []
    for line in shown(lines):
        case = problem.case(int(line["index"]))
        if isinstance(case, RehearsalCase):
            rows += _case_rows(case, surrogate, objective, line, seed)
    return [asdict(row) for row in rows]


def shown(lines: Sequence[Decided]) -> list[Decided]:
    """The decisions with the largest, the median and the smallest claimed difference, in order of cases."""
    acted = [line for line in lines if line.get("alteration") and math.isfinite(_difference(line))]
    ranked = sorted(acted, key=_difference, reverse=True)
    ranks = sorted({0, len(ranked) // 2, len(ranked) - 1}) if ranked else []
    return sorted((ranked[rank] for rank in ranks[:CASES]), key=lambda line: int(line["index"]))


def places(case: RehearsalCase, name: str, count: int) -> list[float]:
    """The values of an action at which its curve is evaluated; of classes their places."""
    classes = _classes(case, name)
    if classes is not None:
        return [float(index) for index in offered_places(classes, case.levels)]
    lower, upper = case.feasible[name]
    levels = case.levels.get(name)
    if levels is not None:
        indices = torch.linspace(0, len(levels) - 1, min(count, len(levels))).round().long().tolist()
        return [float(levels[index]) for index in indices]
    return torch.linspace(lower, upper, count if lower < upper else 1, dtype=torch.float64).tolist()


def _classes(case: RehearsalCase, name: str) -> Coding | None:
    """The coding of an action of classes; None for others."""
    matches = (coding for coding in case.codings if coding.name == name and coding.reference is not None)
    return next(matches, None)


def bins(surrogate: RehearsalSurrogate, case: RehearsalCase, name: str) -> dict[str, Any] | None:
    """How many of the observations lie where, within the range of an action; None if the model holds no rows.
    An action of levels or classes has a bar at each of them, of the rows next to it.

    Returns:
        For each bar its place (``at``, the left edge of a bin), its ends ``low`` and ``high``, and
            ``counts``, None for 1 to 4 rows; and how many ``rows`` there are, of at most 2000 evenly spaced
            ones.
    """
    overlap = surrogate.overlap
    if not overlap.known:
        return None
    classes = _classes(case, name)
    columns = (name,) if classes is None else classes.columns
    columns_at = [overlap.names.index(column) for column in columns]
    offsets = overlap.scale[columns_at] * overlap.rows[:, columns_at]
    values = (overlap.location[columns_at] + offsets).to("cpu", torch.float64)
    if classes is None:
        along, levels = values[:, 0], list(case.levels.get(name, ()))
    else:
        levels = [float(class_index) for class_index in offered_places(classes, case.levels)]
        along = torch.cdist(values, values.new_tensor(classes.rows)).argmin(-1).to(values)
    lower, upper = case.feasible[name] if classes is None else (levels[0], levels[-1])
    if not lower < upper:
        return None
    gap = min((high - low for low, high in pairwise(levels)), default=0.0)
    if gap > 0 and len(levels) <= EACH:
        at = torch.tensor(levels, dtype=torch.float64)
        # A row between two levels belongs to one of them.
        distances = (along.unsqueeze(-1) - at).abs()
        members = (distances <= gap / 2) & (distances.argmin(-1, keepdim=True) == torch.arange(len(at)))
        counts, low, high = members.sum(0), at - BROAD * gap / 2, at + BROAD * gap / 2
    else:
        edges = torch.linspace(lower - gap / 2, upper + gap / 2, BINS + 1, dtype=torch.float64)
        inside = along[(along >= edges[0]) & (along <= edges[-1])]
        counts = torch.histc(inside, BINS, float(edges[0]), float(edges[-1]))
        at = low = edges[:-1]
        high = edges[1:]
    return {
        "at": at.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "counts": [int(count) if count == 0 or count >= FEWEST else None for count in counts],
        "rows": len(values),
    }


def _difference(line: Decided) -> float:
    return number(claim(line)) - number(before(line))


def _case_rows(
    case: RehearsalCase,
    surrogate: RehearsalSurrogate,
    objective: Callable[..., Any],
    line: Decided,
    seed: int,
) -> list[ClaimRow]:
    """The curves of one decision."""
    codes = {name: float(value) for name, value in line["alteration"].items()}
    setting, columns = in_places(codes, case.codings), tuple(codes)
    names = list(setting)[:MOST]
    count = max(5, min(EACH, POINTS // len(names)))
    grids = {name: places(case, name, count) for name in names}
    coded = [in_indicators({**setting, name: value}, case.codings) for name in names for value in grids[name]]
    settings = [{column: values[column] for column in columns} for values in coded]
    claims = iter(_estimates(case, surrogate, objective, settings, paired_seed(seed, int(line["index"]))))
    curves = {name: [next(claims) for _ in grids[name]] for name in names}
    if not any(estimate is not None for curve in curves.values() for estimate in curve):
        return []
    identity = str(line.get("identity", line["index"]))
    present = {name: float(value) for name, value in (line.get("present") or {}).items()}
    present_places, before_point = in_places(present, case.codings), number(before(line))
    estimate_cells = [number(claim(line, part)) for part in ("point", "lower", "upper", "level")]
    rows = []
    for name in names:
        for x, estimate in zip(grids[name], curves[name], strict=True):
            rows.append(ClaimRow(identity, name, CLAIM, x, *_estimate_cells(estimate)))
        rows.append(ClaimRow(identity, name, SET, setting[name], *map(_or_empty, estimate_cells)))
        if name in present_places:
            rows.append(ClaimRow(identity, name, PRESENT, present_places[name]))
        rows.append(ClaimRow(identity, name, BEFORE, setting[name], _or_empty(before_point)))
        if bars := bins(surrogate, case, name):
            parts = (bars[part] for part in ("at", "counts", "low", "high"))
            for at, count, low, high in zip(*parts, strict=True):
                rows.append(ClaimRow(identity, name, ROWS, at, _or_empty(count), low, high))
    return rows


def _estimates(
    case: RehearsalCase,
    surrogate: RehearsalSurrogate,
    objective: Callable[..., Any],
    settings: Sequence[Mapping[str, float]],
    seed: int,
) -> list[Estimate | None]:
    """The estimate of each setting; None where there is no number, or it is withheld."""
    alterations = [
        Alteration(tuple(values), torch.tensor(list(values.values()), dtype=torch.float64))
        for values in settings
    ]
    with in_numbers("the fitted surrogate"), seeded(seed):
        scores = objective_for(objective, surrogate, [case] * len(alterations))
        if not isinstance(scores, Candidates):
            return [None] * len(alterations)
        return [None if claim is None else _visible(claim) for claim in claimed(scores, alterations)]


def _visible(claim: Claimed) -> Estimate | None:
    """The estimate that may be shown; None if it is of something else, refused, or outside the data."""
    estimate = claim.decision.estimate
    beyond, _ = outside(claim.decision.findings)
    return None if estimate is None or estimate.of != CHANCE or claim.refused or beyond else estimate


def _estimate_cells(estimate: Estimate | None) -> list[float | str]:
    if estimate is None:
        return [""] * 4
    return list(map(_or_empty, (estimate.point, estimate.lower, estimate.upper, estimate.level)))


def _or_empty(value: float | None) -> float | str:
    return "" if value is None or math.isnan(value) else value
