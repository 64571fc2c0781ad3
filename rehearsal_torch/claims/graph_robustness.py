"""Sensitivity of decisions to the causal graph: gains under each graph of a Markov equivalence class.

A decision is made with the graph of the task. Where several graphs may be true (a class that observations
cannot tell apart, or learnt graphs), the method is fitted again under each of them, and its own estimates of
the same action and of no action are compared,

    gain_g = estimate_g(a) - estimate_g(no action),

0 where no directed path of g leads from the altered variables to an outcome. The trace of a decision has

    stand   sum of the weights of the graphs with gain_g > 0
    worst   the smallest gain, its graph (index, and `worst_named`: the edges that not all have), its weight
    judged  sum of the weights of the graphs under which the method has estimates

Methods that the graph enters through adjustment sets alone (`RehearsalSurrogate.by_adjustment`) are fitted
once for each distinct collection of these sets: many graphs share one. Graphs that contradict the roles of
the task, an action before the context, say, are left out and counted. The action stays: whether another one
would stand under more graphs is not examined. Used by `methods.run_parts`.

Where no graphs are given, they are those that observations cannot tell from the task's (`equally_good`), if
at most 8, which need at most 2 further fits, of at most 5,000 rows, by a method with a closed form. Arrows
between context variables stay, as no answer rests on them.

A missing arrow may be refuted by the rows (`data.graph_check`). Where drawing it changes what a candidate set
is adjusted for, the method is fitted again with all refuted arrows drawn: from covariates to actions, and,
where that is another fit, from actions to covariates. A decision whose gain then leaves its own interval (or
is no gain, where it has none) is withdrawn; others get a finding with the refuted arrows and that gain.

Source: Maathuis, Kalisch and Buehlmann (2009) (effects over all graphs of a class).
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.claims.improvement_test import paid, with_unchanged
from rehearsal_torch.data.codings.task_codings import expanded
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.estimate import change
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.graph_check import Refuted, in_words
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.files.schema import FaultsError
from rehearsal_torch.graphs.equivalence import Background, equivalent, signature
from rehearsal_torch.graphs.graph_notation import GraphClass
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment, reaches
from rehearsal_torch.objectives.objective import Candidates, objective_for
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate

FITS = 50
TRACE = "graphs"
Claimed = Callable[[Sequence[Any], Sequence[Decision]], list[Decision]]


@dataclass(frozen=True)
class MemberGraphs:
    """Claims of decisions that add `TRACE`, and a warning where decisions do not stand under all graphs.

    Attributes:
        graphs: The class, without graphs that contradict the task.
        left_out: The number of these.
        surrogates: The fitted models, one per distinct fit.
        of: The index in `surrogates` of each graph's model.
        objective: Builds the objective of the decisions (`objectives.objective.objective_for`).
        claims: Replaces the claims of the decisions first; None keeps the method's own.
    """

    graphs: GraphClass
    left_out: int
    surrogates: tuple[RehearsalSurrogate, ...]
    of: tuple[int, ...]
    outcomes: tuple[str, ...]
    objective: Callable[..., Any]
    claims: Claimed | None = None

    def __call__(self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, those that alter something with their gains under each graph."""
        claimed = list(decisions) if self.claims is None else self.claims(cases, decisions)
        by_model = [gains(self.objective, surrogate, cases, decisions) for surrogate in self.surrogates]
        by_graph = torch.stack(by_model)[list(self.of)]
        return [
            decision if decision.alteration is None else self._annotated(decision, by_graph[:, index])
            for index, decision in enumerate(claimed)
        ]

    def _annotated(self, decision: Decision, gains: Tensor) -> Decision:
        """The decision with its gains under each graph, (members,)."""
        assert decision.alteration is not None
        names = decision.alteration.names
        reachable = torch.tensor([reaches((graph,), names, self.outcomes) for graph in self.graphs.graphs])
        gains = torch.where(reachable, gains, torch.zeros_like(gains))
        weights, finite = gains.new_tensor(self.graphs.weights), gains.isfinite()
        facts: dict[str, Any] = {
            "graphs": len(gains),
            "fits": len(self.surrogates),
            "left_out": self.left_out,
            "judged": round(float(weights[finite].sum()), 6),
        }
        if not bool(finite.any()):
            return replace(decision, trace=decision.trace | {TRACE: facts})
        stand = float(weights[finite & (gains > 0)].sum())
        worst = int(torch.where(finite, gains, torch.inf).argmin())
        edges = self.graphs.described(worst)
        facts = {
            "stand": round(stand, 6),
            "worst": round(float(gains[worst]), 6),
            "worst_graph": worst,
            "worst_named": edges,
            "worst_weight": round(self.graphs.weights[worst], 6),
            **facts,
        }
        findings = decision.findings
        if facts["stand"] < facts["judged"]:
            against = facts["judged"] - facts["stand"]
            quantity = "" if decision.estimate is None else decision.estimate.of
            text = (
                f"under {against:.1%} of the {len(gains)} graphs that may be true no better than doing "
                f"nothing; worst where {edges} ({change(facts['worst'], quantity)})"
            )
            findings = (*findings, Finding("graph", text, {"against": against}))
        return replace(decision, trace=decision.trace | {TRACE: facts}, findings=findings)


def member_graphs(
    graphs: GraphClass,
    own: Surrogate,
    fitted: Callable[[RehearsalGraph], RehearsalSurrogate],
    objective: Callable[..., Any],
    claims: Claimed | None = None,
    told: Callable[[str], None] | None = None,
) -> MemberGraphs:
    """Fits the method under every graph of a class, each distinct fit once.

    Args:
        own: The fitted model of the task's own graph.
        told: Receives the progress, one line per fit; None for silence.

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
    if extra := sorted(set(graphs.graphs[0].names) ^ set(task.graph.names)):
        raise ValueError(
            f"{extra} are not both in these graphs and in the task's: expected the same variables"
        )
    faults = [fault(task, graph) for graph in graphs.graphs]
    valid = [index for index, message in enumerate(faults) if not message]
    if not valid:
        raise ValueError(f"each of {len(faults)} graphs contradicts the roles of the task: {faults[0]}")
    members = GraphClass(
        tuple(graphs.graphs[index] for index in valid), tuple(graphs.weights[index] for index in valid)
    )
    keys = [fit_key(own, task, graph) for graph in members.graphs]
    distinct_keys = list(dict.fromkeys(keys))
    own_key = fit_key(own, task, task.graph)
    fits = [key for key in distinct_keys if key != own_key]
    if len(fits) > FITS:
        raise ValueError(
            f"{len(members.graphs)} graphs need {len(fits)} fits; expected at most {FITS}: direct more "
            "edges, or leave improbable graphs out"
        )
    surrogates = []
    for key in distinct_keys:
        if key == own_key:
            surrogates.append(own)
            continue
        if told is not None:
            told(f"graphs: fit {fits.index(key) + 1} of {len(fits)}, for {keys.count(key)} of {len(keys)}")
        surrogates.append(fitted(members.graphs[keys.index(key)]))
    models, left_out = tuple(distinct_keys.index(key) for key in keys), len(faults) - len(valid)
    return MemberGraphs(members, left_out, tuple(surrogates), models, task.outcomes, objective, claims)


MEMBERS, FURTHER_FITS, ROWS = 8, 2, 5000


def equally_good(own: RehearsalSurrogate) -> GraphClass | None:
    """The Markov equivalence class of the task's graph, equally weighted; None if too large or of one fit."""
    task = own.task
    roles = Background.roles(task.graph.names, task.context, task.outcomes)
    required = [edge for edge in task.graph.edges if set(edge) <= set(task.context)]
    try:
        graphs = equivalent(task.graph, replace(roles, required=tuple(required)), MEMBERS)
    except ValueError:
        return None
    graphs = tuple(graph for graph in graphs if not fault(task, graph))
    fits = {fit_key(own, task, graph) for graph in graphs}
    if not 1 < len(fits) <= 1 + FURTHER_FITS:
        return None
    return GraphClass(graphs, (1.0,) * len(graphs))


def with_arrows(task: RehearsalTask, refuted: Sequence[Refuted]) -> list[RehearsalGraph]:
    """The task's graph with refuted arrows drawn, in both directions; without graphs that are not valid."""
    graph, downstream = task.graph, task.graph.descendants(task.box.names)
    roles = {name: 0 for name in task.context} | {name: 3 for name in task.outcomes}
    drawn = []
    for actions, covariates in ((2, 1), (1, 2)):
        rank = {name: actions if name in downstream else covariates for name in graph.names} | roles
        ranks = {name: index for index, name in enumerate(_topological_order(graph, rank))}
        edges = dict.fromkeys(graph.edges)
        for arrow in refuted:
            causes, targets = sorted((arrow.first, arrow.second), key=lambda names: ranks[names[0]])
            effects = dict.fromkeys(member for name in targets for member in graph.clique(name))
            edges |= dict.fromkeys((cause, effect) for cause in causes for effect in effects)
        try:
            candidate = RehearsalGraph(graph.cliques, tuple(edges), graph.hidden)
        except ValueError:
            continue
        if candidate not in drawn and not fault(task, candidate):
            drawn.append(candidate)
    return drawn


def _topological_order(graph: RehearsalGraph, rank: Mapping[str, int]) -> list[str]:
    """The variables in a topological order, clique by clique, those with a low rank as early as it allows."""
    pending, order = list(graph.cliques), list[str]()
    while pending:
        candidates = [clique for clique in pending if set(graph.parents(clique)) <= set(order)]
        earliest = min(candidates, key=lambda clique: min(rank[name] for name in clique))
        pending.remove(earliest)
        order += earliest
    return order


@dataclass(frozen=True)
class Drawn:
    """Claims that withdraw decisions, or add a warning, where they rest on a missing arrow that rows refute.

    Attributes:
        surrogates: The fitted models with the arrows drawn.
        needed: For each of them, candidate set to the refuted arrows that it needs, in words.
        declines: Whether decisions are withdrawn.
        claims: As in `MemberGraphs`.
    """

    surrogates: tuple[RehearsalSurrogate, ...]
    needed: tuple[Mapping[tuple[str, ...], str], ...]
    objective: Callable[..., Any]
    declines: bool
    claims: Claimed | None = None

    def __call__(self, cases: Sequence[RehearsalCase], decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions that stand with the arrows drawn."""
        claimed = list(decisions) if self.claims is None else self.claims(cases, decisions)
        for surrogate, needed in zip(self.surrogates, self.needed, strict=True):
            drawn_gains = gains(self.objective, surrogate, cases, decisions).tolist()
            claimed = [
                decision
                if decision.alteration is None or decision.alteration.names not in needed
                else self._annotated(decision, needed[decision.alteration.names], gain + paid(case, decision))
                for case, decision, gain in zip(cases, claimed, drawn_gains, strict=True)
            ]
        return claimed

    def _annotated(self, decision: Decision, arrows: str, drawn_gain: float) -> Decision:
        """The decision with its gain when the arrows are drawn; NaN where that is not known."""
        warning = f"the answer rests on what the rows contradict: {arrows}"
        if math.isnan(drawn_gain):
            return decision.told([Finding("refuted_graph", warning)])
        quantity = "" if decision.estimate is None else decision.estimate.of
        lower, upper = _gain_interval(decision)
        inside = drawn_gain > 0 if lower is None or upper is None else lower <= drawn_gain <= upper
        numbers = {"gain": drawn_gain}
        note = ""
        if lower is not None and upper is not None:
            numbers |= {"lower": lower, "upper": upper}
            position = "inside" if inside else "outside"
            note = f", {position} of its interval, {change(lower, quantity)} to {change(upper, quantity)}"
        finding = Finding(
            "refuted_graph",
            f"{warning}; with these arrows drawn, the gain is {change(drawn_gain, quantity)}{note}",
            numbers,
        )
        return decision.told([finding]) if inside or not self.declines else decision.withdrawn(finding)


def _gain_interval(decision: Decision) -> tuple[float | None, float | None]:
    """The interval of a decision's gain, or, where it has none, that of its estimate minus the baseline."""
    if decision.gain is not None and decision.gain.lower is not None:
        return decision.gain.lower, decision.gain.upper
    estimate, before = decision.estimate, decision.before
    if estimate is None or before is None or estimate.lower is None or estimate.upper is None:
        return None, None
    return estimate.lower - before.point, estimate.upper - before.point


def drawn(
    own: RehearsalSurrogate,
    refuted: Sequence[Refuted],
    fitted: Callable[[RehearsalGraph], RehearsalSurrogate],
    objective: Callable[..., Any],
    declines: bool,
    claims: Claimed | None = None,
    told: Callable[[str], None] | None = None,
) -> Claimed | None:
    """`Drawn` claims, with a fit per direction of the arrows; `claims` if no adjustment changes."""
    task, keys = own.task, {fit_key(own, own.task, own.task.graph)}
    surrogates, needed = [], []
    for graph in with_arrows(task, refuted):
        affected = [names for names in task.candidates if _changes_adjustment(task, graph, names)]
        key = fit_key(own, task, graph)
        if not affected or key in keys:
            continue
        keys.add(key)
        if told is not None:
            told("graphs: fit with the arrows drawn that the rows call for")
        surrogates.append(fitted(graph))
        needed.append({names: _deciding_arrows(task, graph, refuted, names) for names in affected})
    if not surrogates:
        return claims
    return Drawn(tuple(surrogates), tuple(needed), objective, declines, claims)


def _changes_adjustment(task: RehearsalTask, graph: RehearsalGraph, names: tuple[str, ...]) -> bool:
    before, after = (adjustment(g, task.context, names, task.outcomes) for g in (task.graph, graph))
    sets = ("before", "between", "first")
    return any(set(getattr(before, name)) != set(getattr(after, name)) for name in sets)


def _deciding_arrows(
    task: RehearsalTask, graph: RehearsalGraph, refuted: Sequence[Refuted], names: tuple[str, ...]
) -> str:
    """The first of the refuted arrows that change an adjustment each by itself, or else of all, in words."""
    drawn_edges = set(graph.edges) - set(task.graph.edges)
    sufficient = []
    for arrow in refuted:
        ends = set(arrow.first) | set(arrow.second)
        without_others = tuple(edge for edge in graph.edges if edge not in drawn_edges or set(edge) <= ends)
        if _changes_adjustment(task, replace(task.graph, edges=without_others), names):
            sufficient.append(arrow)
    deciding = sufficient or list(refuted)
    (first,) = in_words(task, deciding[:1])
    return first if len(deciding) == 1 else f"{first} (and {len(deciding) - 1} more)"


@dataclass(frozen=True)
class Doubts:
    """Refuted arrows and rival graphs of a fitted method, with a cache of its fits under other graphs.

    Attributes:
        refuted: The missing arrows that the rows contradict.
        members: Whether decisions are judged under the graphs that fit the rows as well (`equally_good`).
        fit: Returns the method fitted under a graph.
        fits: The cache, by the `signature` of the graph.
    """

    refuted: tuple[Refuted, ...]
    members: bool
    fit: Callable[[RehearsalGraph], RehearsalSurrogate]
    fits: dict[Hashable, RehearsalSurrogate] = field(default_factory=dict, repr=False)

    def fitted(self, graph: RehearsalGraph) -> RehearsalSurrogate:
        """The method fitted under a graph."""
        key = signature(graph)
        if key not in self.fits:
            self.fits[key] = self.fit(graph)
        return self.fits[key]

    def claims(
        self,
        own: RehearsalSurrogate,
        objective: Callable[..., Any],
        declines: bool,
        claims: Claimed | None = None,
        told: Callable[[str], None] | None = None,
        graphs: GraphClass | None = None,
    ) -> Claimed | None:
        """Claims followed by `Drawn` and `MemberGraphs`; fits under given `graphs` are not cached."""
        claims = drawn(own, self.refuted, self.fitted, objective, declines, claims, told)
        fitted = self.fit
        if graphs is None and self.members:
            graphs, fitted = equally_good(own), self.fitted
        return claims if graphs is None else member_graphs(graphs, own, fitted, objective, claims, told)


def gains(
    objective: Callable[..., Any],
    surrogate: RehearsalSurrogate,
    cases: Sequence[RehearsalCase],
    decisions: Sequence[Decision],
) -> Tensor:
    """The net gain of each decision over the present values, or, where these are unknown, no action, by
    `surrogate`, (B,); NaN where it has no estimate.
    """
    net = torch.full((len(decisions),), math.nan, dtype=torch.float64)
    built = objective_for(objective, surrogate, cases)
    if not isinstance(built, Candidates):
        return net
    judged = [
        decision
        if appraised is None or decision.alteration is None
        else Decision(decision.alteration, 0.0, estimate=appraised.estimate, baseline=appraised.baseline)
        for decision, appraised in zip(decisions, built.appraisals(decisions), strict=True)
    ]
    for index, decision in enumerate(with_unchanged(built, judged)):
        if decision.alteration is not None and decision.estimate is not None and decision.before is not None:
            net[index] = decision.estimate.point - decision.before.point - paid(cases[index], decision)
    return net


def fault(task: RehearsalTask, graph: RehearsalGraph) -> str:
    """Why a graph contradicts the roles of the variables; empty if it does not."""
    try:
        replace(task, graph=graph)
    except FaultsError as error:
        return "; ".join(problem.words for problem in error.faults)
    return ""


def fit_key(own: RehearsalSurrogate, task: RehearsalTask, graph: RehearsalGraph) -> Hashable:
    """The part of a graph that enters the fit: equal keys have equal fits."""
    if not own.by_adjustment:
        return (frozenset(graph.edges), frozenset(map(frozenset, graph.bidirected)), frozenset(graph.hidden))
    sets = [adjustment(graph, task.context, names, task.outcomes) for names in task.candidates]
    return tuple((frozenset(s.before), frozenset(s.between), frozenset(s.first), s.front_door) for s in sets)
