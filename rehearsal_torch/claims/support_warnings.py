"""What lies outside the observations, and where these contradict the graph.

A finding for each context variable and action beyond its observed range, for a decision that is farther from
the observations than 97.5 % of them are from each other (`rehearsal_surrogate.Overlap`), for variables that
are connected with the outcomes through bi-directional edges only, and for each action on which the outcomes
depend although the graph has no path; and what the rows refute of the model. The distance of every alteration
to its 5th nearest observation is in the trace, as ``distance``.
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
    """The decisions with what lies outside the data, and the distance to it."""
    objective = context.objective
    known = objective.surrogate if isinstance(objective, Candidates) else None
    if known is None or not known.overlap.known:
        return list(decisions)
    task, overlap = known.task, known.overlap
    contexts = task.given(objective.cases)
    misfit = known.misfit()
    contradictions = overlap.contradictions() + ([] if misfit is None else [misfit])
    findings = [each + contradictions for each in overlap.outside_each(task.context, contexts.tolist())]
    distances: list[dict[str, float]] = [{} for _ in decisions]
    # All cases in which the same variables are set, at once.
    actions = defaultdict[tuple[str, ...], dict[int, Tensor]](dict)
    for index, each in enumerate(decisions):
        if each.alteration is not None and set(each.alteration.names) <= set(task.box.names):
            actions[each.alteration.names][index] = each.alteration.values
    for names, of_case in actions.items():
        mine, values = list(of_case), torch.stack(list(of_case.values()))
        without_arrows = [_joined(known, names)] if _only_joined(known, names) else []
        for index, beyond in zip(mine, overlap.outside_each(names, values.tolist()), strict=True):
            findings[index] += beyond + without_arrows
        if names not in task.candidates:
            continue
        limit = overlap.limit(names)
        for index, far in zip(mine, overlap.distance(names, contexts[mine], values).tolist(), strict=True):
            distances[index] = {"distance": round(far, 4)}
            if far > limit + ROUNDING:
                findings[index].append(_far(far, limit))
    return [
        each.changed(findings=joined(each.findings, said), trace=each.trace | distance)
        for each, said, distance in zip(decisions, findings, distances, strict=True)
    ]


def _only_joined(known: RehearsalSurrogate, names: tuple[str, ...]) -> bool:
    """Whether variables and outcomes are connected through bi-directional edges only."""
    task, graphs = known.task, known.overlap.graphs
    arrows = any(graph.descendants(names) & set(task.outcomes) for graph in graphs)
    return not arrows and reaches(graphs, names, task.outcomes)


def _joined(known: RehearsalSurrogate, names: tuple[str, ...]) -> Finding:
    task = known.task
    variables = ", ".join(task.variables(names))
    return Finding(
        "graph",
        f"{variables} and {', '.join(task.outcomes)} are connected through bi-directional edges only; if "
        f"these stand for a hidden common cause, setting {variables} changes nothing",
    )


def _far(far: float, limit: float) -> Finding:
    here, there = apart(far, limit)
    usual = (
        f"for {SHARE:.1%} of the rows it is within {there}: the answer is an extrapolation"
        if limit > ROUNDING
        else "the rows repeat the same few values, and this is not one of them: the answer is an "
        "interpolation between observed values"
    )
    return Finding(
        "support",
        "few rows are like this case with these settings: the fifth most similar row is "
        f"{here} standard deviations away; {usual}",
        {"distance": far, "limit": limit},
    )
