"""What becomes of a decision if one edge of the graph goes.

For every directed edge into an altered variable, an outcome, or a variable on a directed path between them,
the graph without it is taken for true:

    no directed path     nothing that is set reaches an outcome any more: the gain is 0
    same fit             the fit does not change (`claims.member_graphs.fit_key`), nor does the gain
    another fit          the method is fitted again under the graph, and judges the same action

A recommendation stands if the gain, its estimate minus that for no action (or for the present values, where
they are known), is positive; no action stands if it is not. An edge into variables that are joined by
bi-directional edges goes into all of them, and is taken out as a whole. At most so many distinct fits are
made as the caller allows; the edges that would need a further one are reported as not checked.

Source: ours; after Maathuis, Kalisch and Buehlmann (2009) (effects over several graphs).
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rehearsal_torch.api.configured import decisions
from rehearsal_torch.api.explaining.explanation import Verdict, WithoutEdge
from rehearsal_torch.api.new_cases import NewCases
from rehearsal_torch.claims.member_graphs import fault, fit_key, gains
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.influence_paths import reaches
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box

if TYPE_CHECKING:
    from rehearsal_torch.api.rehearsal_model import RehearsalModel
    from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate

# By which share of its range a variable differs clearly.
APART = 0.1
Refitted = Callable[[RehearsalGraph], "RehearsalSurrogate"]


@dataclass(frozen=True)
class _Judged:
    """The gain of an action under a fit, and what the method would set there."""

    gain: float
    instead: dict[str, float]


def without_edges(
    model: "RehearsalModel",
    case: RehearsalCase,
    decision: Decision,
    action: Decision,
    refitted: Refitted | None,
    refits: int,
) -> tuple[WithoutEdge, ...]:
    """What becomes of a decision without each edge into an altered variable, an outcome, or between them.

    Args:
        model: The fitted method; its surrogate has one graph.
        action: The action that is judged: that of the decision, or the one that was not recommended.
        refitted: Fits the method under another graph; None if its rows are not known.
        refits: The largest number of fits.
    """
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
            if refitted is None:
                why = "that needs the rows of the fit, which were not saved: explain(case, table=...)"
                found.append(WithoutEdge(edge, "unknown", None, why))
                continue
            if made == refits:
                why = f"more than {refits} fits are needed, the limit of this explanation (refits=...)"
                found.append(WithoutEdge(edge, "unknown", None, why))
                continue
            made += 1
            known[key] = _judged(model, case, action, refitted(graph))
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
    model: "RehearsalModel", case: RehearsalCase, action: Decision, surrogate: "RehearsalSurrogate"
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
