"""Explaining one decision of a fitted method: `RehearsalModel.explain`.

Collected are, for the recommended action (or the one that was found and not recommended):

    adjustment   the covariates of each candidate set, from the graph
    near rows    the rows whose distance to context and action is at most the 97.5th percentile of the rows'
                 own distance to their 5th nearest row (`surrogates.overlap`)
    runners-up   the best action of the other candidate sets, searched as the method searches; and in the same
                 set the best of 512 points of the box, and of a step of a tenth of the range along each
                 variable, that differ from it by at least that step in some variable, or in a level
    edges        whether it stands without single edges of the graph
    hidden cause the tipping strength (`data.sensitivity`)

Runners-up are ranked by the value by which the method's search compares actions. A flat optimum shows as a
runner-up that is not told apart from the action.

For every directed edge into an altered variable, an outcome, or a variable on a directed path between them,
the graph without it is taken for true:

    no directed path     nothing that is set reaches an outcome any more: the gain is 0
    same fit             the fit does not change (`claims.member_graphs.fit_key`), nor does the gain
    another fit          the method is fitted again under the graph, and judges the same action

A recommendation stands if the gain, its estimate minus that for no action (or for the present values, where
they are known), is positive; no action stands if it is not. An edge into variables that are joined by
bi-directional edges goes into all of them, and is taken out as a whole.

Source of the edges: after Maathuis, Kalisch and Buehlmann (2009) (effects over several graphs).
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rehearsal_torch.api.configured import decisions
from rehearsal_torch.api.explaining.explanation import (
    Adjusted,
    Explanation,
    NearRows,
    RunnerUp,
    Verdict,
    WithoutEdge,
)
from rehearsal_torch.api.new_cases import NewCases
from rehearsal_torch.api.what_if import FittedMethod, difference_of, number, objectives_in
from rehearsal_torch.claims.member_graphs import fault, fit_key, gains
from rehearsal_torch.data.codings.class_actions import cycled
from rehearsal_torch.data.codings.texts import sentence_in_words, wanted_in
from rehearsal_torch.data.decision import DIFFERENCE, Decision, Estimate, RehearsalCase
from rehearsal_torch.data.finite import in_numbers, ranked
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment, reaches
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates
from rehearsal_torch.spaces.box import Alteration, Box
from rehearsal_torch.surrogates.overlap import ROUNDING
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.user_error import RequestError

if TYPE_CHECKING:
    import pandas as pd

POINTS = 512
# By which share of its range a variable differs clearly.
APART = 0.1


@dataclass(frozen=True)
class FittedRows:
    """The rows of a fit, which a saved model does not hold.

    Attributes:
        observations: Returns them.
        under: Returns the method fitted to them under another graph of the task's variables.
    """

    observations: Callable[[], Table]
    under: Callable[[RehearsalGraph], RehearsalSurrogate]


def explain(
    model: FittedMethod,
    case: RehearsalCase,
    decision: Decision,
    past: FittedRows | None,
    rows: bool,
    refits: int,
) -> Explanation:
    """Why a method decides as it does in a case, as `RehearsalModel.explain` has it."""
    action = _considered(decision)
    names = () if action.alteration is None else action.alteration.names
    adjusted = tuple(
        _adjusted(model, each) for each in sorted(model.task.candidates, key=lambda one: one != names)
    )
    if action.alteration is None:
        return Explanation(case, decision, {}, adjusted, None, (), (), wanted=wanted_in(model.task))
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
        elif decision.undecided:
            notes.append("Single edges were not taken out: nothing is recommended that could stand.")
        else:
            edges = _without_edges(model, case, decision, action, past, refits)
    words = model.task.worded
    return Explanation(
        case,
        decision,
        words(setting),
        adjusted,
        near,
        tuple(replace(each, alteration=words(each.alteration)) for each in others),
        tuple(replace(each, instead=words(each.instead)) for each in edges),
        tuple(notes),
        wanted_in(model.task),
    )


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
    return replace(decision, alteration=Alteration(tuple(would), values))


def _adjusted(model: FittedMethod, names: tuple[str, ...]) -> Adjusted:
    task = model.task
    found = adjustment(task.graph, task.context, names, task.outcomes)
    by = model.surrogate.by_adjustment
    own, context, before, between = map(task.variables, (names, task.context, found.before, found.between))
    reasons = tuple(sentence_in_words(each, task.coded) for each in found.reasons)
    return Adjusted(own, context, before, between, reasons, by)


def _near(
    model: FittedMethod, case: RehearsalCase, action: Decision, observed: Table | None, shown: bool
) -> NearRows | None:
    """The rows near the action: of all rows where they are known, else of those that the model stores."""
    known = model.surrogate.overlap
    assert action.alteration is not None
    names = action.alteration.names
    if not known.known or names not in model.task.candidates:
        return None
    point = torch.cat([model.task.given([case])[0], action.alteration.values.to(torch.float64)])
    values = known.stored().cpu() if observed is None else observed.columns(known.names)
    distances, radius = known.distances(names, point, values).cpu(), known.limit(names)
    order = distances.argsort(stable=True)
    order = order[distances[order] <= radius + ROUNDING]
    used = (*model.task.context, *names)
    columns = values[order][:, [known.names.index(name) for name in used]]
    ends = zip(used, columns.T, strict=True) if len(order) else ()
    region = {name: (float(column.min()), float(column.max())) for name, column in ends}
    region, classes = _in_words(model.task, region, columns, used)
    desired, frame = None, None
    if observed is not None:
        inside = model.task.region.contains(observed.columns(model.task.outcomes)[order])
        desired = int(inside.sum())
    if shown:
        import pandas as pd

        source, heads = (values, known.names) if observed is None else (observed.values, observed.names)
        frame = pd.DataFrame(source[order].numpy(), columns=list(heads))
        frame = _frame_in_words(model.task, frame).assign(distance=distances[order].numpy())
    effective = number(action.trace.get("support"))
    return NearRows(len(order), len(values), radius, region, desired, effective, frame, classes)


def _in_words(
    task: RehearsalTask, region: Mapping[str, tuple[float, float]], columns: Tensor, used: Sequence[str]
) -> tuple[dict[str, tuple[Any, Any]], dict[str, tuple[str, ...]]]:
    """The region with texts in place of codes, and for each variable of classes those that occur."""
    said: dict[str, tuple[Any, Any]] = dict(region)
    classes: dict[str, tuple[str, ...]] = {}
    for coding in task.codings:
        if not set(coding.columns) <= set(region):
            continue
        if coding.reference is None:
            low, high = (coding.text([end]) for end in region[coding.name])
            if low is not None and high is not None:
                said[coding.name] = (low, high)
            continue
        rows = columns[:, [used.index(name) for name in coding.columns]].tolist()
        found = {coding.text(row) for row in rows}
        classes[coding.name] = tuple(each for each in coding.levels if each in found)
        said = {name: ends for name, ends in said.items() if name not in coding.columns}
    return said, classes


def _frame_in_words(task: RehearsalTask, frame: "pd.DataFrame") -> "pd.DataFrame":
    """Rows with texts in place of codes."""
    if not task.codings:
        return frame
    import pandas as pd

    return pd.DataFrame(
        [task.worded({str(name): cell for name, cell in row.items()}) for row in frame.to_dict("records")],
        index=frame.index,
    )


def _runners_up(
    model: FittedMethod, objective: Candidates[AlterationObjective], action: Decision
) -> tuple[RunnerUp, ...]:
    """The best action of the other sets, and the best other action of the same set."""
    assert action.alteration is not None
    names, found = action.alteration.names, list[RunnerUp]()
    search = copy(model.method.search)
    search.declines = False
    others = [
        Candidates(objective.cases, [one], objective.surrogate)
        for one in objective.whole
        if one.names != names
    ]
    sets = [search(one) for one in others]
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
    spread = cycled(box.sobol(POINTS), box.names, objective.cases[0].codings, box.levels)
    points = torch.cat([box.project(torch.cat([action + step, action - step])), spread])
    points = points[clearly_apart(box, points, action)].unsqueeze(1)
    if not len(points):
        return None
    points = points.to(objective.starts(1).device)
    values = ranked(objective.sought_at_last(points))[:, 0]
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
    (mine,), (found,) = (objective.appraisals([each]) for each in (action, other))
    setting = dict(zip(names, values.tolist(), strict=True))
    estimate, own = None if found is None else found.estimate, None if mine is None else mine.estimate
    apart = None
    if estimate is not None and own is not None:
        apart = Estimate(round(own.point - estimate.point, 6), DIFFERENCE)
    known, basis = difference_of(objective, action.alteration, other.alteration), ""
    if known is not None:
        apart, basis = known
    against = None if found is None else found.refused or found.unsupported or found.declined
    return RunnerUp(setting, of, estimate, apart, str(against or ""), basis)


@dataclass(frozen=True)
class _Judged:
    """The gain of an action under a fit, and what the method would set there."""

    gain: float
    instead: dict[str, float]


def _without_edges(
    model: FittedMethod,
    case: RehearsalCase,
    decision: Decision,
    action: Decision,
    past: FittedRows | None,
    refits: int,
) -> tuple[WithoutEdge, ...]:
    """What becomes of a decision without each edge into an altered variable, an outcome, or between them."""
    assert action.alteration is not None
    task, names, recommended = model.task, action.alteration.names, decision.alteration is not None
    objective = model.method.objective
    (own,) = gains(objective, model.surrogate, [case], [action]).tolist()
    known: dict[Hashable, _Judged] = {fit_key(model.surrogate, task, task.graph): _Judged(own, {})}
    made, found = 0, list[WithoutEdge]()
    for edge, graph, problem in _without(task, _ends(task.graph, names, task.outcomes)):
        against = problem or ("" if graph is None else fault(task, graph))
        if graph is None or against:
            found.append(WithoutEdge(edge, "unknown", None, f"the graph would be no valid one ({against})"))
            continue
        if not reaches((graph,), names, task.outcomes):
            own_names = ", ".join(task.variables(names))
            where = f"no directed path leads from {own_names} to {', '.join(task.outcomes)} then"
            found.append(WithoutEdge(edge, "falls" if recommended else "stands", 0.0, where))
            continue
        key, why = fit_key(model.surrogate, task, graph), "the fit does not change"
        if key not in known:
            if past is None:
                why = "that needs the rows of the fit, which were not saved: explain(case, table=...)"
                found.append(WithoutEdge(edge, "unknown", None, why))
                continue
            if made == refits:
                why = f"more than {refits} fits are needed, the limit of this explanation (refits=...)"
                found.append(WithoutEdge(edge, "unknown", None, why))
                continue
            made += 1
            known[key] = _judged(model, case, action, past.under(graph))
        if len(known) > 1 and key != next(iter(known)):
            why = "fitted again under the graph without it"
        one = known[key]
        if not math.isfinite(one.gain):
            found.append(WithoutEdge(edge, "unknown", None, "the method has no estimate of the gain"))
            continue
        verdict: Verdict = "stands" if (one.gain > 0) == recommended else "falls"
        found.append(WithoutEdge(edge, verdict, one.gain, why, one.instead))
    return tuple(found)


def _judged(
    model: FittedMethod, case: RehearsalCase, action: Decision, surrogate: RehearsalSurrogate
) -> _Judged:
    (gain,) = gains(model.method.objective, surrogate, [case], [action]).tolist()
    stated = () if case.costs is None else [case.costs.stated()]
    problem = NewCases(
        surrogate.task, surrogate.task.given([case]), [case.identity], [case.present], unit_costs=stated
    )
    (again,) = decisions(problem, surrogate, model.method, model.seed, overturning=model.overturning)
    one, own = again.alteration, action.alteration
    assert own is not None
    if one is None or (
        one.names == own.names
        and not bool(clearly_apart(model.task.box.only(own.names), one.values, own.values))
    ):
        return _Judged(gain, {})
    return _Judged(gain, dict(zip(one.names, one.values.tolist(), strict=True)))


def clearly_apart(box: Box, points: Tensor, action: Tensor) -> Tensor:
    """Whether points differ from an action in some variable by at least a tenth of its range, or in its
    level, (..., k), (k,) -> (...) bool.
    """
    levelled = torch.tensor([name in box.levels for name in box.names])
    apart = (points - action).abs()
    clear = torch.where(levelled, apart > box.near, apart >= APART * box.width * (1 - 1e-9))
    return (clear & (box.width > 0)).any(-1)


def _ends(graph: RehearsalGraph, altered: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """The altered variables and the outcomes, and what lies on a directed path between them."""
    after = graph.descendants(altered, altered) & graph.ancestors(outcomes)
    return [name for name in graph.names if name in after or name in altered or name in outcomes]


def _without(
    task: RehearsalTask, into: Sequence[str]
) -> Iterator[tuple[tuple[str, str], RehearsalGraph | None, str]]:
    """Each edge into one of some variables, the graph without it, and why there is no such graph; the edges
    of the indicators of classes are one edge of their variable.
    """
    graph = task.graph
    parts = {each.name: each.columns for each in task.codings}
    seen: dict[tuple[str, tuple[str, ...]], None] = {}
    for name in dict.fromkeys(into):
        for cause in task.variables(graph.parents(name)):
            seen[cause, graph.clique(name)] = None
    for cause, members in seen:
        target = ", ".join(task.variables(members))
        gone = {(part, member) for part in parts.get(cause, (cause,)) for member in members}
        edges = [edge for edge in graph.edges if edge not in gone]
        try:
            left = RehearsalGraph.mixed(graph.names, edges, graph.bidirected)
        except ValueError as error:
            yield (cause, target), None, str(error)
            continue
        yield (cause, target), left, ""
