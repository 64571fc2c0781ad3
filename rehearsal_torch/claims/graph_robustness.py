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

Where nobody says which graphs may be true, they are those that observations cannot tell from the task's
(`equally_good`), if these are few: at most 8, which need at most 2 further fits, of at most 5,000 rows, by a
method that solves and trains nothing. Arrows between context variables stay, as no answer rests on them.

A missing arrow may be refuted by the rows (`data.graph_check`). Where drawing it changes what a candidate set
is adjusted for, the method is fitted again with all refuted arrows drawn: from covariates to actions, and,
where that is another fit, from actions to covariates. A decision whose gain then leaves its own interval (or
is no gain, where it has none) is withdrawn; beside others stands what was refuted, and the gain.

Source: Maathuis, Kalisch and Buehlmann (2009) (effects over all graphs of a class); ours for decisions.
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
# The entry of the trace.
TRACE = "graphs"
Claimed = Callable[[Sequence[Any], Sequence[Decision]], list[Decision]]


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
    claims: Claimed | None = None

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
    claims: Claimed | None = None,
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


MEMBERS, FURTHER_FITS, ROWS = 8, 2, 5000


def equally_good(own: RehearsalSurrogate) -> GraphClass | None:
    """The graphs that observations cannot tell from the task's and the roles permit, with equal weights; None
    if they are too many, need too many fits, or need none.
    """
    task = own.task
    order = Background.roles(task.graph.names, task.context, task.outcomes)
    within = [edge for edge in task.graph.edges if set(edge) <= set(task.context)]
    try:
        graphs = equivalent(task.graph, replace(order, required=tuple(within)), MEMBERS)
    except ValueError:
        return None
    graphs = tuple(each for each in graphs if not fault(task, each))
    fits = {fit_key(own, task, each) for each in graphs}
    if not 1 < len(fits) <= 1 + FURTHER_FITS:
        return None
    return GraphClass(graphs, (1.0,) * len(graphs))


def with_arrows(task: RehearsalTask, refuted: Sequence[Refuted]) -> list[RehearsalGraph]:
    """The task's graph with refuted arrows drawn: from covariates to actions, and from actions to covariates;
    without those that are no valid graph.
    """
    graph, after = task.graph, task.graph.descendants(task.box.names)
    roles = {name: 0 for name in task.context} | {name: 3 for name in task.outcomes}
    drawn = []
    for actions, others in ((2, 1), (1, 2)):
        rank = {name: actions if name in after else others for name in graph.names} | roles
        order = {name: place for place, name in enumerate(_sorted(graph, rank))}
        edges = dict.fromkeys(graph.edges)
        for each in refuted:
            first, second = sorted((each.first, each.second), key=lambda names: order[names[0]])
            effects = dict.fromkeys(member for name in second for member in graph.clique(name))
            edges |= dict.fromkeys((cause, effect) for cause in first for effect in effects)
        try:
            whole = RehearsalGraph(graph.cliques, tuple(edges), graph.hidden)
        except ValueError:
            continue
        if whole not in drawn and not fault(task, whole):
            drawn.append(whole)
    return drawn


def _sorted(graph: RehearsalGraph, rank: Mapping[str, int]) -> list[str]:
    """The variables in a topological order, clique by clique, those with a low rank as early as it allows."""
    left, order = list(graph.cliques), list[str]()
    while left:
        ready = [each for each in left if set(graph.parents(each)) <= set(order)]
        taken = min(ready, key=lambda clique: min(rank[name] for name in clique))
        left.remove(taken)
        order += taken
    return order


@dataclass(frozen=True)
class Drawn:
    """Withdraws decisions that rest on a missing arrow which the rows contradict, and tells others.

    It is passed to the loop of decisions as its claims.

    Attributes:
        surrogates: The fitted models with the arrows drawn.
        needed: For each of them, candidate set to the refuted arrows that it needs, in words.
        declines: Whether decisions are withdrawn.
        claims: Replaces the claims of the decisions first; None keeps the method's own.
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
            again = gains(self.objective, surrogate, cases, decisions).tolist()
            claimed = [
                each
                if each.alteration is None or each.alteration.names not in needed
                else self._judged(each, needed[each.alteration.names], gain + paid(case, each))
                for case, each, gain in zip(cases, claimed, again, strict=True)
            ]
        return claimed

    def _judged(self, decision: Decision, words: str, again: float) -> Decision:
        """The decision with its gain with the arrows drawn; NaN where that is not known."""
        said = f"the answer rests on what the rows contradict: {words}"
        if math.isnan(again):
            return decision.told([Finding("refuted_graph", said)])
        of = "" if decision.estimate is None else decision.estimate.of
        lower, upper = _ends(decision)
        inside = again > 0 if lower is None or upper is None else lower <= again <= upper
        numbers = {"gain": again}
        own = ""
        if lower is not None and upper is not None:
            numbers |= {"lower": lower, "upper": upper}
            where = "inside" if inside else "outside"
            own = f", {where} of its interval, {change(lower, of)} to {change(upper, of)}"
        finding = Finding(
            "refuted_graph",
            f"{said}; with what is missing drawn, the gain is {change(again, of)}{own}",
            numbers,
        )
        return decision.told([finding]) if inside or not self.declines else decision.withdrawn(finding)


def _ends(decision: Decision) -> tuple[float | None, float | None]:
    """The interval of a decision's gain: where it has none, that of the estimate, less what it is compared
    with.
    """
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
    """The claims of decisions with refuted arrows drawn (`Drawn`), fitted once for each way of drawing that
    is another fit; the claims as they are where no candidate set needs a refuted one.
    """
    task, known = own.task, {fit_key(own, own.task, own.task.graph)}
    surrogates, needed = [], []
    for graph in with_arrows(task, refuted):
        rests = [names for names in task.candidates if _adjusted(task, graph, names)]
        key = fit_key(own, task, graph)
        if not rests or key in known:
            continue
        known.add(key)
        if told is not None:
            told("graphs: fit with the arrows drawn that the rows call for")
        surrogates.append(fitted(graph))
        needed.append({names: _needed(task, graph, refuted, names) for names in rests})
    if not surrogates:
        return claims
    return Drawn(tuple(surrogates), tuple(needed), objective, declines, claims)


def _adjusted(task: RehearsalTask, graph: RehearsalGraph, names: tuple[str, ...]) -> bool:
    """Whether another graph changes what a candidate set is adjusted for."""
    one, other = (adjustment(each, task.context, names, task.outcomes) for each in (task.graph, graph))
    return any(
        set(mine) != set(others)
        for mine, others in zip(
            (one.before, one.between, one.first), (other.before, other.between, other.first), strict=True
        )
    )


def _needed(
    task: RehearsalTask, graph: RehearsalGraph, refuted: Sequence[Refuted], names: tuple[str, ...]
) -> str:
    """The first of the refuted arrows that change what a candidate set is adjusted for, each by itself, in
    words; of all where only together they do.
    """
    edges = set(graph.edges) - set(task.graph.edges)
    alone = []
    for each in refuted:
        ends = set(each.first) | set(each.second)
        own = tuple(edge for edge in graph.edges if edge not in edges or set(edge) <= ends)
        if _adjusted(task, replace(task.graph, edges=own), names):
            alone.append(each)
    mine = alone or list(refuted)
    (first,) = in_words(task, mine[:1])
    return first if len(mine) == 1 else f"{first} (and {len(mine) - 1} more)"


@dataclass(frozen=True)
class Doubts:
    """What is doubted of the graph of a fitted method, with the fits under other graphs, each once.

    Attributes:
        refuted: The missing arrows that the rows contradict.
        members: Whether decisions are judged under the graphs that fit the rows as well (`equally_good`).
        fit: Returns the method fitted under a graph.
        fits: What was fitted, by the content of the graph.
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
        """The claims of decisions, followed by what becomes of them with refuted arrows drawn, and under the
        graphs that may be true; fits under `graphs` that are given are not kept.
        """
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
    except FaultsError as error:
        return "; ".join(each.words for each in error.faults)
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
