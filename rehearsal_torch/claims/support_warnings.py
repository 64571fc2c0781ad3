"""Overlap of a decision with the observations (extrapolation warnings), and contradictions to the graph.

A finding for each context variable and action beyond its observed range, for a decision that is farther from
the observations than 97.5 % of them are from each other (`rehearsal_surrogate.Overlap`), for variables that
are connected with the outcomes through bi-directional edges only, for each action on which the outcomes
depend although the graph has no path, and for a model that the rows refute. The distance of every alteration
to its 5th nearest observation is in the trace, as ``distance``. Used by `claims.abstention_rules`.
"""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.estimate import apart
from rehearsal_torch.data.finding import Finding, joined
from rehearsal_torch.graphs.separation import reaches
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.surrogates.rehearsal_surrogate import ROUNDING, SHARE, RehearsalSurrogate


def support(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions with these findings and the distance."""
    objective = context.objective
    surrogate = objective.surrogate if isinstance(objective, Candidates) else None
    if surrogate is None or not surrogate.overlap.known:
        return list(decisions)
    task, overlap = surrogate.task, surrogate.overlap
    contexts = task.given(objective.cases)
    misfit = surrogate.misfit()
    contradictions = overlap.contradictions() + ([] if misfit is None else [misfit])
    findings = [row + contradictions for row in overlap.outside_each(task.context, contexts.tolist())]
    distances: list[dict[str, float]] = [{} for _ in decisions]
    # All cases in which the same variables are set, at once.
    actions = defaultdict[tuple[str, ...], dict[int, Tensor]](dict)
    for index, decision in enumerate(decisions):
        if decision.alteration is not None and set(decision.alteration.names) <= set(task.box.names):
            actions[decision.alteration.names][index] = decision.alteration.values
    for names, by_case in actions.items():
        indices, values = list(by_case), torch.stack(list(by_case.values()))
        without_arrows = [_joined(surrogate, names)] if _only_joined(surrogate, names) else []
        for index, beyond in zip(indices, overlap.outside_each(names, values.tolist()), strict=True):
            findings[index] += beyond + without_arrows
        if names not in task.candidates:
            continue
        limit = overlap.limit(names)
        away = overlap.distance(names, contexts[indices], values).tolist()
        for index, distance in zip(indices, away, strict=True):
            distances[index] = {"distance": round(distance, 4)}
            if distance > limit + ROUNDING:
                findings[index].append(_far(distance, limit))
    return [
        decision.changed(findings=joined(decision.findings, new), trace=decision.trace | distance)
        for decision, new, distance in zip(decisions, findings, distances, strict=True)
    ]


def _only_joined(surrogate: RehearsalSurrogate, names: tuple[str, ...]) -> bool:
    """Whether variables and outcomes are connected through bi-directional edges only."""
    task, graphs = surrogate.task, surrogate.overlap.graphs
    arrows = any(graph.descendants(names) & set(task.outcomes) for graph in graphs)
    return not arrows and reaches(graphs, names, task.outcomes)


def _joined(surrogate: RehearsalSurrogate, names: tuple[str, ...]) -> Finding:
    task = surrogate.task
    variables = ", ".join(task.variables(names))
    return Finding(
        "graph",
        f"{variables} and {', '.join(task.outcomes)} are connected through bi-directional edges only; if "
        f"these stand for a hidden common cause, setting {variables} changes nothing",
    )


def _far(distance: float, limit: float) -> Finding:
    distance_text, limit_text = apart(distance, limit)
    comparison = (
        f"for {SHARE:.1%} of the rows it is within {limit_text}: the answer is an extrapolation"
        if limit > ROUNDING
        else "the rows repeat the same few values, and this is not one of them: the answer is an "
        "interpolation between observed values"
    )
    return Finding(
        "support",
        "few rows are like this case with these settings: the fifth most similar row is "
        f"{distance_text} standard deviations away; {comparison}",
        {"distance": distance, "limit": limit},
    )
