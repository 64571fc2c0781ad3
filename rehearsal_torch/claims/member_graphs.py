"""The graph is a belief: under which of the graphs that may be true a decision stands, and the worst.

A decision is made with the graph of the task. Where several graphs may be true (a class that observations
cannot tell apart, or graphs that were learnt), the method is fitted again under each of them, and its own
estimates of the same action and of no action are compared,

    gain_g = estimate_g(a) - estimate_g(no action),

0 where no directed path of g leads from the altered variables to an outcome. Recorded are

    stand   sum of the weights of the graphs with gain_g > 0
    worst   the smallest gain, its graph (index, and `worst_named`: the edges that not all have), its weight
    judged  sum of the weights of the graphs under which the method has estimates

Methods that the graph enters through adjustment sets alone (`RehearsalSurrogate.by_adjustment`) are fitted
once for each distinct collection of these sets: many graphs share one. Graphs that contradict the roles of
the task, an action before the context, say, are left out; their number is recorded. The action stays: whether
another one would stand under more graphs is not asked.

Source: Maathuis, Kalisch and Buehlmann (2009) (effects over all graphs of a class); ours for decisions.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.claims.improvement import paid, with_unchanged
from rehearsal_torch.data.codings.written import expanded
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.estimate import change
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment, reaches
from rehearsal_torch.graphs.written_graph import GraphClass
from rehearsal_torch.objectives.objective import Candidates, objective_for
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

FITS = 50
# The entry of the trace.
TRACE = "graphs"


@dataclass(frozen=True)
class MemberGraphs:
    """Adds to the trace of decisions under which graphs they stand (`TRACE`), and a warning where they do not
    under all.

    It is passed to the loop of decisions as its claims.

    Attributes:
        graphs: The class, without graphs that contradict the task.
        left_out: The number of those.
        surrogates: The fitted models, one per distinct fit.
        of: The place of each graph's model.
        objective: Builds the objective of the decisions (`objectives.objective.objective_for`).
        claims: Replaces the claims of the decisions first; None keeps the method's own.
    """

    graphs: GraphClass
    left_out: int
    surrogates: tuple[RehearsalSurrogate, ...]
    of: tuple[int, ...]
    outcomes: tuple[str, ...]
    objective: Callable[..., Any]
    claims: Callable[[Sequence[Any], Sequence[Decision]], list[Decision]] | None = None

    def __call__(self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, with ``graphs`` in the trace of those that alter something."""
        claimed = list(decisions) if self.claims is None else self.claims(cases, decisions)
        every = [gains(self.objective, each, cases, decisions) for each in self.surrogates]
        found = torch.stack(every)[list(self.of)]
        return [
            each if each.alteration is None else self._judged(each, found[:, index])
            for index, each in enumerate(claimed)
        ]

    def _judged(self, decision: Decision, gains: Tensor) -> Decision:
        """The decision with what becomes of it under each graph, (members,)."""
        assert decision.alteration is not None
        names = decision.alteration.names
        linked = torch.tensor([reaches((graph,), names, self.outcomes) for graph in self.graphs.graphs])
        gains = torch.where(linked, gains, torch.zeros_like(gains))
        weights, known = gains.new_tensor(self.graphs.weights), gains.isfinite()
        facts: dict[str, Any] = {
            "graphs": len(gains),
            "fits": len(self.surrogates),
            "left_out": self.left_out,
            "judged": round(float(weights[known].sum()), 6),
        }
        if not bool(known.any()):
            return replace(decision, trace=decision.trace | {TRACE: facts})
        stand = float(weights[known & (gains > 0)].sum())
        worst = int(torch.where(known, gains, torch.inf).argmin())
        named = self.graphs.described(worst)
        facts = {
            "stand": round(stand, 6),
            "worst": round(float(gains[worst]), 6),
            "worst_graph": worst,
            "worst_named": named,
            "worst_weight": round(self.graphs.weights[worst], 6),
            **facts,
        }
        findings = decision.findings
        if facts["stand"] < facts["judged"]:
            against = facts["judged"] - facts["stand"]
            of = "" if decision.estimate is None else decision.estimate.of
            text = (
                f"under {against:.1%} of the {len(gains)} graphs that may be true no better than doing "
                f"nothing; worst where {named} ({change(facts['worst'], of)})"
            )
            findings = (*findings, Finding("graph", text, {"against": against}))
        return replace(decision, trace=decision.trace | {TRACE: facts}, findings=findings)


def member_graphs(
    graphs: GraphClass,
    own: Surrogate,
    fitted: Callable[[RehearsalGraph], RehearsalSurrogate],
    objective: Callable[..., Any],
    claims: Callable[[Sequence[Any], Sequence[Decision]], list[Decision]] | None = None,
    told: Callable[[str], None] | None = None,
) -> MemberGraphs:
    """Fits the method under every graph of a class, each distinct fit once.

    Args:
        graphs: The class; its variables are those of the task.
        own: The fitted model of the task's own graph.
        fitted: Returns a model fitted under a graph.
        objective: Builds the objective of the decisions.
        told: Is told of the progress, one line per fit; None for silence.

    Raises:
        ValueError: if the model has several graphs of its own, variables differ from the task's, every graph
            contradicts its roles, or more than 50 fits are needed.
    """
    if not isinstance(own, RehearsalSurrogate) or len(own.overlap.graphs) > 1:
        raise ValueError(
            f"{type(own).__name__} weighs its candidate graphs itself: leave graphs out, and give them as "
            "surrogate.hypotheses"
        )
    task = own.task
    # The graphs name a variable of classes, and the task its indicators.
    graphs = replace(graphs, graphs=tuple(expanded(graph, task.coded) for graph in graphs.graphs))
    if odd := sorted(set(graphs.graphs[0].names) ^ set(task.graph.names)):
        raise ValueError(f"{odd} are not both in these graphs and in the task's: expected the same variables")
    faults = [fault(task, graph) for graph in graphs.graphs]
    kept = [index for index, each in enumerate(faults) if not each]
    if not kept:
        raise ValueError(f"each of {len(faults)} graphs contradicts the roles of the task: {faults[0]}")
    left = GraphClass(
        tuple(graphs.graphs[index] for index in kept), tuple(graphs.weights[index] for index in kept)
    )
    keys = [fit_key(own, task, graph) for graph in left.graphs]
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    distinct = list(dict.fromkeys(keys))
    same = fit_key(own, task, task.graph)
    fits = [key for key in distinct if key != same]
    if len(fits) > FITS:
        raise ValueError(
            f"{len(left.graphs)} graphs need {len(fits)} fits; expected at most {FITS}: direct more "
            "edges, or leave improbable graphs out"
        )
    surrogates = []
    for key in distinct:
        if key == same:
            surrogates.append(own)
            continue
        if told is not None:
            told(f"graphs: fit {fits.index(key) + 1} of {len(fits)}, for {keys.count(key)} of {len(keys)}")
        surrogates.append(fitted(left.graphs[first[key]]))
    places = tuple(distinct.index(key) for key in keys)
    return MemberGraphs(
        left, len(faults) - len(kept), tuple(surrogates), places, task.outcomes, objective, claims
    )


def gains(
    objective: Callable[..., Any],
    surrogate: RehearsalSurrogate,
    cases: Sequence[RehearsalCase],
    decisions: Sequence[Decision],
) -> Tensor:
    """The estimate of each decision's action minus that of the present values, or, where these are unknown,
    of no action, (B,); NaN where there is none. Where costs count, less the cost in units of the worth.

    Args:
        objective: Builds the objective of the decisions (`objectives.objective.objective_for`).
        surrogate: The fitted model that judges.
    """
    found = torch.full((len(decisions),), math.nan, dtype=torch.float64)
    made = objective_for(objective, surrogate, cases)
    if not isinstance(made, Candidates):
        return found
    claimed = [
        each
        if appraised is None or each.alteration is None
        else Decision(each.alteration, 0.0, estimate=appraised.estimate, baseline=appraised.baseline)
        for each, appraised in zip(decisions, made.appraisals(decisions), strict=True)
    ]
    for index, one in enumerate(with_unchanged(made, claimed)):
        if one.alteration is not None and one.estimate is not None and one.before is not None:
            found[index] = one.estimate.point - one.before.point - paid(cases[index], one)
    return found


def fault(task: RehearsalTask, graph: RehearsalGraph) -> str:
    """Why a graph contradicts the roles of the variables; empty if it does not."""
    try:
        replace(task, graph=graph)
    except ValueError as error:
        return str(error)
    return ""


def fit_key(own: RehearsalSurrogate, task: RehearsalTask, graph: RehearsalGraph) -> Hashable:
    """What of a graph enters the fit: equal keys have equal fits."""
    if not own.by_adjustment:
        return (frozenset(graph.edges), frozenset(map(frozenset, graph.bidirected)), frozenset(graph.hidden))
    found = [adjustment(graph, task.context, names, task.outcomes) for names in task.candidates]
    return tuple(
        (frozenset(each.before), frozenset(each.between), frozenset(each.first), each.front_door)
        for each in found
    )
