"""Computing the explanation of one decision of a fitted method, for `RehearsalModel.explain`.

Collected are, for the recommended action (or the one that was found and not recommended):

    adjustment   the covariates of each candidate set, from the graph
    near rows    the rows whose distance to context and action is at most the 97.5th percentile of the rows'
                 own distance to their 5th nearest row (`surrogates.rehearsal_surrogate`)
    runners-up   the best action of the other candidate sets, searched as the method searches; and in the same
                 set the best of 512 points of the box, and of a step of a tenth of the range along each
                 variable, that differ from it by at least that step in some variable, or in a level
    edges        whether it stands without single edges of the graph
    hidden cause the tipping strength (`data.sensitivity`)

Runners-up are ranked by the value of the method's search. At a flat optimum their difference is about zero.

For every directed edge into an altered variable, an outcome, or a variable on a directed path between them,
the graph without it is taken for true:

    no directed path     nothing that is set reaches an outcome any more: the gain is 0
    same fit             the fit does not change (`claims.graph_robustness.fit_key`), nor does the gain
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
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.api.explanation import Adjusted, Explanation, NearRows, RunnerUp, WithoutEdge
from rehearsal_torch.api.fit_and_decide import decided
from rehearsal_torch.api.rehearsal_request import NewCases
from rehearsal_torch.api.what_if import FittedMethod, difference_of, number, objectives_in
from rehearsal_torch.claims.graph_robustness import fault, fit_key, gains
from rehearsal_torch.data.codings.decision_texts import region_in_words, sentence_in_words
from rehearsal_torch.data.codings.one_hot_actions import with_classes_in_turn
from rehearsal_torch.data.decision import DIFFERENCE, Decision, Estimate, RehearsalCase
from rehearsal_torch.data.non_finite import in_numbers, ranked
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment, reaches
from rehearsal_torch.objectives.objective import AlterationObjective, Candidates
from rehearsal_torch.search.search import better_judged
from rehearsal_torch.spaces.box import Alteration, Box
from rehearsal_torch.surrogates.rehearsal_surrogate import ROUNDING, RehearsalSurrogate
from rehearsal_torch.user_error import RequestError

POINTS = 512
APART = 0.1  # By which share of its range a variable differs clearly.


@dataclass(frozen=True)
class FittedRows:
    """The rows of a fit, which no saved model holds, and the method fitted to them under other graphs."""

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
        _adjustment(model, group) for group in sorted(model.task.candidates, key=lambda group: group != names)
    )
    if action.alteration is None:
        return Explanation(case, decision, {}, adjusted, None, (), (), wanted=region_in_words(model.task))
    setting = dict(zip(names, action.alteration.values.tolist(), strict=True))
    notes: list[str] = []
    observed = None if past is None else past.observations()
    near = _near_rows(model, case, action, observed, rows)
    if near is None:
        notes.append("There are too few rows to say which are near.")
    edges: tuple[WithoutEdge, ...] = ()
    with in_numbers("the fitted surrogate"), torch.random.fork_rng(devices=[]):
        runners_up = _runners_up(model, objectives_in(model, [case]), action)
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
        tuple(replace(rival, alteration=words(rival.alteration)) for rival in runners_up),
        tuple(replace(edge, instead=words(edge.instead)) for edge in edges),
        tuple(notes),
        region_in_words(model.task),
    )


def check_explained(refits: object, rows: object) -> None:
    """Refuses arguments of `RehearsalModel.explain` of the wrong kind."""
    if isinstance(refits, bool) or not isinstance(refits, int) or refits < 0:
        raise RequestError(f"refits: expected a whole number of at least 0; got {refits!r}")
    if not isinstance(rows, bool):
        raise RequestError(f"rows: expected True or False; got {rows!r}")


def _considered(decision: Decision) -> Decision:
    """The decision with the action that it withdrew, if it did; without an alteration if there is none."""
    would = decision.trace.get("would_set")
    if decision.alteration is not None or not isinstance(would, Mapping):
        return decision
    values = torch.tensor(list(would.values()), dtype=torch.float64)
    return replace(decision, alteration=Alteration(tuple(would), values))


def _adjustment(model: FittedMethod, names: tuple[str, ...]) -> Adjusted:
    task = model.task
    sets = adjustment(task.graph, task.context, names, task.outcomes)
    altered, context, before, between = map(task.variables, (names, task.context, sets.before, sets.between))
    reasons = tuple(sentence_in_words(reason, task.coded) for reason in sets.reasons)
    enters = model.surrogate.by_adjustment
    return Adjusted(altered, context, before, between, reasons, enters, sets.front_door)


def _near_rows(
    model: FittedMethod, case: RehearsalCase, action: Decision, observed: Table | None, shown: bool
) -> NearRows | None:
    """The rows near the action: of all rows where they are known, else of those that the model stores."""
    overlap = model.surrogate.overlap
    assert action.alteration is not None
    names = action.alteration.names
    if not overlap.known or names not in model.task.candidates:
        return None
    point = torch.cat([model.task.given([case])[0], action.alteration.values.to(torch.float64)])
    values = overlap.stored().cpu() if observed is None else observed.columns(overlap.names)
    distances, radius = overlap.distances(names, point, values).cpu(), overlap.limit(names)
    order = distances.argsort(stable=True)
    order = order[distances[order] <= radius + ROUNDING]
    columns_used = (*model.task.context, *names)
    columns = values[order][:, [overlap.names.index(name) for name in columns_used]]
    pairs = zip(columns_used, columns.T, strict=True) if len(order) else ()
    region = {name: (float(column.min()), float(column.max())) for name, column in pairs}
    region, classes = _in_words(model.task, region, columns, columns_used)
    desired, frame = None, None
    if observed is not None:
        desired = int(model.task.region.contains(observed.columns(model.task.outcomes)[order]).sum())
    if shown:
        source, heads = (values, overlap.names) if observed is None else (observed.values, observed.names)
        frame = pd.DataFrame(source[order].numpy(), columns=list(heads))
        if model.task.codings:
            rows: list[Any] = frame.to_dict("records")
            frame = pd.DataFrame([model.task.worded(row) for row in rows], index=frame.index)
        frame = frame.assign(distance=distances[order].numpy())
    effective, beyond = (number(action.trace.get(name)) for name in ("support", "beyond"))
    return NearRows(len(order), len(values), radius, region, desired, effective, frame, classes, beyond)


def _in_words(
    task: RehearsalTask, region: Mapping[str, tuple[float, float]], columns: Tensor, names: Sequence[str]
) -> tuple[dict[str, tuple[Any, Any]], dict[str, tuple[str, ...]]]:
    """The region with texts in place of codes, and for each variable of classes those that occur."""
    worded: dict[str, tuple[Any, Any]] = dict(region)
    classes: dict[str, tuple[str, ...]] = {}
    for coding in task.codings:
        if not set(coding.columns) <= set(region):
            continue
        if coding.reference is None:
            low, high = (coding.text([end]) for end in region[coding.name])
            if low is not None and high is not None:
                worded[coding.name] = (low, high)
            continue
        rows = columns[:, [names.index(name) for name in coding.columns]].tolist()
        present = {coding.text(row) for row in rows}
        classes[coding.name] = tuple(level for level in coding.levels if level in present)
        worded = {name: ends for name, ends in worded.items() if name not in coding.columns}
    return worded, classes


def _runners_up(
    model: FittedMethod, objective: Candidates[AlterationObjective], action: Decision
) -> tuple[RunnerUp, ...]:
    """The best action of the other sets, and the best other action of the same set."""
    assert action.alteration is not None
    names, runners_up = action.alteration.names, list[RunnerUp]()
    search, present = copy(model.method.search), objective.cases[0].kept(names)
    search.declines = False
    kept = set[str]()
    if present is not None:
        kept = {
            name
            for name, same in zip(names, (present.values == action.alteration.values).tolist(), strict=True)
            if same
        }
    parts = [part for whole in objective.whole for part in whole.parts(model.task)]
    mine = next((part for part in parts if part.names == names and {*part.held} <= kept), None)
    judged = ~better_judged(objective, parts)[:, 0]
    sets = [
        search(Candidates(objective.cases, [part], objective.surrogate))
        for part, sought in zip(parts, judged.tolist(), strict=True)
        if sought and part is not mine
    ]
    finite = [decision.value if math.isfinite(decision.value) else -math.inf for decision in sets]
    if sets and (best := _considered(sets[finite.index(max(finite))])).alteration is not None:
        runners_up.append(_runner_up(objective, action, best, "set"))
    rival = None if mine is None else _distinct(mine, model.task.box.only(names), action.alteration.values)
    if rival is not None:
        runners_up.append(_runner_up(objective, action, Decision(Alteration(names, rival), 0.0), "action"))
    return tuple(runners_up)


@torch.no_grad()
def _distinct(objective: AlterationObjective, box: Box, action: Tensor) -> Tensor | None:
    """The best of some actions that differ clearly from a given one, (k,); None if there is none."""
    step = (APART * box.width).diag()
    spread = with_classes_in_turn(box.sobol(POINTS), box.names, objective.cases[0].codings, box.levels)
    points = torch.cat([box.project(torch.cat([action + step, action - step])), spread])
    if objective.held:
        points = objective.project(points.unsqueeze(1).to(objective.lower))[:, 0].to(points)
    points = points[clearly_apart(box, points, action)].unsqueeze(1)
    if not len(points):
        return None
    points = points.to(objective.starts(1).device)
    values = ranked(objective.sought_at_last(points))[:, 0]
    values = values.masked_fill(~objective.acceptable(points)[:, 0], -torch.inf)
    if not bool(values.isfinite().any()):
        return None
    return points[int(values.argmax()), 0].to("cpu", torch.float64)


def _runner_up(
    objective: Candidates[AlterationObjective], action: Decision, second: Decision, of: Any
) -> RunnerUp:
    """The other action with its estimate, and the difference to the first."""
    assert action.alteration is not None
    assert second.alteration is not None
    names, values = second.alteration.names, second.alteration.values
    (chosen,), (rival,) = (objective.appraisals([decision]) for decision in (action, second))
    setting = dict(zip(names, values.tolist(), strict=True))
    estimate, base = None if rival is None else rival.estimate, None if chosen is None else chosen.estimate
    difference = None
    if estimate is not None and base is not None:
        difference = Estimate(round(base.point - estimate.point, 6), DIFFERENCE)
    contrast, basis = difference_of(objective, action.alteration, second.alteration), ""
    if contrast is not None:
        difference, basis = contrast
    objection = None if rival is None else rival.refused or rival.unsupported or rival.declined
    return RunnerUp(setting, of, estimate, difference, str(objection or ""), basis)


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
    (own_gain,) = gains(model.method.objective, model.surrogate, [case], [action]).tolist()
    # By fit: the gain of the action, and what the method would set.
    fitted = fit_key(model.surrogate, task, task.graph)
    gain_of: dict[Hashable, tuple[float, dict[str, float]]] = {fitted: (own_gain, {})}

    def verdict(edge: tuple[str, str], graph: RehearsalGraph | None, problem: str) -> WithoutEdge:
        if graph is None or (problem := fault(task, graph)):
            return WithoutEdge(edge, "unknown", None, f"the graph would be no valid one ({problem})")
        if not reaches((graph,), names, task.outcomes):
            altered, outcomes = ", ".join(task.variables(names)), ", ".join(task.outcomes)
            where = f"no directed path leads from {altered} to {outcomes} then"
            return WithoutEdge(edge, "falls" if recommended else "stands", 0.0, where)
        key = fit_key(model.surrogate, task, graph)
        if key not in gain_of and past is None:
            reason = "that needs the rows of the fit, which were not saved: explain(case, table=...)"
            return WithoutEdge(edge, "unknown", None, reason)
        if key not in gain_of and len(gain_of) > refits:
            reason = f"more than {refits} fits are needed, the limit of this explanation (refits=...)"
            return WithoutEdge(edge, "unknown", None, reason)
        if key not in gain_of and past is not None:
            gain_of[key] = _gain_and_choice(model, case, action, past.under(graph))
        reason = "the fit does not change" if key == fitted else "fitted again under the graph without it"
        gain, instead = gain_of[key]
        if not math.isfinite(gain):
            return WithoutEdge(edge, "unknown", None, "the method has no estimate of the gain")
        return WithoutEdge(edge, "stands" if (gain > 0) == recommended else "falls", gain, reason, instead)

    edges = _graphs_without(task, _variables_between(task.graph, names, task.outcomes))
    return tuple(verdict(edge, graph, problem) for edge, graph, problem in edges)


def _gain_and_choice(
    model: FittedMethod, case: RehearsalCase, action: Decision, surrogate: RehearsalSurrogate
) -> tuple[float, dict[str, float]]:
    """The gain of an action under a fit, and what the method would set there, if that differs clearly."""
    (gain,) = gains(model.method.objective, surrogate, [case], [action]).tolist()
    unit_costs = () if case.costs is None else [case.costs.stated()]
    problem = NewCases(
        surrogate.task, surrogate.task.given([case]), [case.identity], [case.present], unit_costs=unit_costs
    )
    (round,) = decided(problem, surrogate, model.method, model.seed, overturning=model.overturning)
    chosen, altered = round.decision.alteration, action.alteration
    assert altered is not None
    same_names = chosen is not None and chosen.names == altered.names
    if chosen is None or (
        same_names and not clearly_apart(model.task.box.only(altered.names), chosen.values, altered.values)
    ):
        return gain, {}
    return gain, dict(zip(chosen.names, chosen.values.tolist(), strict=True))


def clearly_apart(box: Box, points: Tensor, action: Tensor) -> Tensor:
    """Which points (..., k) differ from an action by a tenth of a range or in a level, (...) bool."""
    levelled = torch.tensor([name in box.levels for name in box.names])
    apart = (points - action).abs()
    clear = torch.where(levelled, apart > box.near, apart >= APART * box.width * (1 - 1e-9))
    return (clear & (box.width > 0)).any(-1)


def _variables_between(graph: RehearsalGraph, altered: Sequence[str], outcomes: Sequence[str]) -> list[str]:
    """The altered variables and the outcomes, and what lies on a directed path between them."""
    after = graph.descendants(altered, altered) & graph.ancestors(outcomes)
    return [name for name in graph.names if name in after or name in altered or name in outcomes]


def _graphs_without(
    task: RehearsalTask, into: Sequence[str]
) -> Iterator[tuple[tuple[str, str], RehearsalGraph | None, str]]:
    """Each edge into some variables, all of an indicator's as one, the graph without it, or its fault."""
    graph = task.graph
    columns_of = {coding.name: coding.columns for coding in task.codings}
    groups: dict[tuple[str, tuple[str, ...]], None] = {}
    for name in dict.fromkeys(into):
        for cause in task.variables(graph.parents(name)):
            groups[cause, graph.clique(name)] = None
    for cause, members in groups:
        target = ", ".join(task.variables(members))
        removed = {(column, member) for column in columns_of.get(cause, (cause,)) for member in members}
        edges = [edge for edge in graph.edges if edge not in removed]
        try:
            graph_without = RehearsalGraph.mixed(graph.names, edges, graph.bidirected)
        except ValueError as error:
            yield (cause, target), None, str(error)
            continue
        yield (cause, target), graph_without, ""
