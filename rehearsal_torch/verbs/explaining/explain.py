"""Explaining one decision of a fitted method: `RehearsalModel.explain`.

Collected are, for the recommended action (or the one that was found and not recommended):

    adjustment   the covariates of each candidate set, from the graph
    near rows    the rows whose distance to context and action is at most the 97.5th percentile of the rows'
                 own distance to their 5th nearest row (`surrogates.overlap`)
    runners-up   the best action of the other candidate sets, searched as the method searches; and in the same
                 set the best of 512 points of the box, and of a step of a tenth of the range along each
                 variable, that differ from it by at least that step in some variable, or in a level
    edges        whether it stands without single edges of the graph (`verbs.explaining.edge_removal`)
    hidden cause the tipping strength (`data.sensitivity`)

Runners-up are ranked by the value by which the method's search compares actions. A flat optimum shows as a
runner-up that is not told apart from the action.

Source: ours.
"""

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import DIFFERENCE, Decision, Estimate, RehearsalCase
from rehearsal_torch.data.finite import in_numbers, ranked
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.objectives.candidates import Candidates, appraisals
from rehearsal_torch.objectives.objective import AlterationObjective
from rehearsal_torch.spaces.box import Alteration, Box
from rehearsal_torch.verbs.explaining.edge_removal import APART, clearly_apart, without_edges
from rehearsal_torch.verbs.explaining.explanation import (
    Adjusted,
    Explanation,
    NearRows,
    RunnerUp,
    WithoutEdge,
)
from rehearsal_torch.verbs.methods import RequestError
from rehearsal_torch.verbs.what_if import number, objectives_in

if TYPE_CHECKING:
    from rehearsal_torch.verbs.explaining.fitted_rows import FittedRows
    from rehearsal_torch.verbs.rehearsal_model import RehearsalModel

POINTS = 512


def explain(
    model: "RehearsalModel",
    case: RehearsalCase,
    decision: Decision,
    past: "FittedRows | None",
    rows: bool,
    refits: int,
) -> Explanation:
    """See `RehearsalModel.explain`.

    Args:
        model: The fitted method.
        case: The case.
        decision: Its decision.
        past: The rows of the fit; None if they are not known.
        rows: Whether to show the near rows.
        refits: The largest number of fits under other graphs.
    """
    action = _considered(decision)
    names = () if action.alteration is None else action.alteration.names
    adjusted = tuple(
        _adjusted(model, each) for each in sorted(model.task.candidates, key=lambda one: one != names)
    )
    if action.alteration is None:
        return Explanation(case, decision, {}, adjusted, None, (), ())
    setting = dict(zip(names, action.alteration.values.tolist(), strict=True))
    notes: list[str] = []
    observed = None if past is None else past.observations()
    near = _near(model, case, action, observed, rows)
    if near is None:
        notes.append("There are too few rows to say which are near.")
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        others = _runners_up(model, objectives_in(model, [case]), action)
        edges: tuple[WithoutEdge, ...] = ()
        if len(model.surrogate.overlap.graphs) > 1:
            notes.append("Single edges were not taken out: the method weighs several graphs itself.")
        elif decision.status == "refused":
            notes.append("Single edges were not taken out: nothing is recommended that could stand.")
        else:
            refitted = None if past is None else past.under
            edges = without_edges(model, case, decision, action, refitted, refits)
    return Explanation(case, decision, setting, adjusted, near, others, edges, tuple(notes))


def check_explained(refits: object, rows: object) -> None:
    """Refuses arguments of `RehearsalModel.explain` of the wrong kind.

    Raises:
        RequestError: with what was expected.
    """
    if isinstance(refits, bool) or not isinstance(refits, int) or refits < 0:
        raise RequestError(f"refits: expected a whole number of at least 0; got {refits!r}")
    if not isinstance(rows, bool):
        raise RequestError(f"rows: expected True or False; got {rows!r}")


def _value(decision: Decision) -> float:
    return decision.value if math.isfinite(decision.value) else -math.inf


def _considered(decision: Decision) -> Decision:
    """The decision with the action that it withdrew, if it did; without an alteration if there is none."""
    would = decision.trace.get("would_set")
    if decision.alteration is not None or not isinstance(would, Mapping):
        return decision
    values = torch.tensor(list(would.values()), dtype=torch.float64)
    return replace(decision, alteration=Alteration(tuple(would), values), status="recommended")


def _adjusted(model: "RehearsalModel", names: tuple[str, ...]) -> Adjusted:
    task = model.task
    found = adjustment(task.graph, task.context, names, task.outcomes)
    by = model.surrogate.by_adjustment
    return Adjusted(names, task.context, found.before, found.between, found.reasons, by)


def _near(
    model: "RehearsalModel", case: RehearsalCase, action: Decision, observed: Table | None, shown: bool
) -> NearRows | None:
    """The rows near the action: of all rows where they are known, else of those that the model stores."""
    known = model.surrogate.overlap
    assert action.alteration is not None
    names = action.alteration.names
    if not known.known or names not in model.task.candidates:
        return None
    point = torch.cat([model.task.given([case])[0], action.alteration.values.to(torch.float64)])
    values = known.stored() if observed is None else observed.columns(known.names)
    distances, radius = known.distances(names, point, values), known.limit(names)
    order = distances.argsort(stable=True)
    order = order[distances[order] <= radius + 1e-9]
    used = (*model.task.context, *names)
    columns = values[order][:, [known.names.index(name) for name in used]]
    ends = zip(used, columns.T, strict=True) if len(order) else ()
    region = {name: (float(column.min()), float(column.max())) for name, column in ends}
    desired, frame = None, None
    if observed is not None:
        inside = model.task.region.contains(observed.columns(model.task.outcomes)[order])
        desired = int(inside.sum())
    if shown:
        import pandas as pd

        source, heads = (values, known.names) if observed is None else (observed.values, observed.names)
        frame = pd.DataFrame(source[order].numpy(), columns=list(heads))
        frame = frame.assign(distance=distances[order].numpy())
    effective = number(action.trace.get("support"))
    return NearRows(len(order), len(values), radius, region, desired, effective, frame)


def _runners_up(
    model: "RehearsalModel", objective: Candidates[AlterationObjective], action: Decision
) -> tuple[RunnerUp, ...]:
    """The best action of the other sets, and the best other action of the same set."""
    assert action.alteration is not None
    names, found = action.alteration.names, list[RunnerUp]()
    search = copy(model.method.search)
    search.declines = False
    sets = [
        search(Candidates(objective.cases, [one], objective.surrogate))
        for one in objective.whole
        if one.names != names
    ]
    if sets and (best := _considered(max(sets, key=_value))).alteration is not None:
        found.append(_compared(objective, action, best, "set"))
    one = next((each for each in objective.whole if each.names == names), None)
    other = None if one is None else _elsewhere(one, model.task.box.only(names), action.alteration.values)
    if other is not None:
        found.append(_compared(objective, action, Decision(Alteration(names, other), 0.0), "action"))
    return tuple(found)


@torch.no_grad()
def _elsewhere(objective: AlterationObjective, box: Box, action: Tensor) -> Tensor | None:
    """The best of some actions that differ clearly from a given one, (k,); None if there is none."""
    step = (APART * box.width).diag()
    points = torch.cat([box.project(torch.cat([action + step, action - step])), box.sobol(POINTS)])
    points = points[clearly_apart(box, points, action)].unsqueeze(1)
    if not len(points):
        return None
    points = points.to(objective.starts(1).device)
    values = ranked(objective.comparison_value(points))[:, 0]
    values = values.masked_fill(~objective.acceptable(points)[:, 0], -torch.inf)
    if not bool(values.isfinite().any()):
        return None
    return points[int(values.argmax()), 0].to("cpu", torch.float64)


def _compared(
    objective: Candidates[AlterationObjective], action: Decision, other: Decision, of: Any
) -> RunnerUp:
    """The other action with its estimate, and the difference to the first."""
    assert action.alteration is not None
    assert other.alteration is not None
    names, values = other.alteration.names, other.alteration.values
    (mine,), (found,) = (appraisals(objective.whole, [each]) for each in (action, other))
    setting = dict(zip(names, values.tolist(), strict=True))
    estimate, own = None if found is None else found.estimate, None if mine is None else mine.estimate
    apart = None
    if estimate is not None and own is not None:
        apart = Estimate(round(own.point - estimate.point, 6), DIFFERENCE)
    if names == action.alteration.names:
        one = next(each for each in objective.whole if each.names == names)
        pair = (each.alteration.values.reshape(1, -1) for each in (action, other) if each.alteration)
        told = one.contrast(*(each.to(one.starts(1).device) for each in pair))
        apart = apart if told is None or told[0] is None else told[0]
    against = "" if found is None else found.refused or found.declined
    return RunnerUp(setting, of, estimate, apart, against)
