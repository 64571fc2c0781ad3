"""When the answer must be "no", or comes with a warning: one rule for every search.

    refused     no directed path leads from what would be set to an outcome: by the graph, setting it does
                nothing
    no action   the method's own estimate is not above its estimate for doing nothing
    warned      a context variable or an action lies beyond its observed range; the decision is farther from
                the observations than 99 % of them are from each other (`surrogates.overlap`); the
                observations contradict the graph

For an episode, what a sequence is worth is replayed by the objective: one that is no better than what was
done is no action, and a claim that the replay does not bear out is warned of.

A search whose `declines` is False is only warned, where it would be refused or kept from acting: presets that
reproduce a publication, and rounds that learn, where acting teaches something.

Source: Qin et al. (2023), Sec. 4.2 (refusing is an answer); the rules are ours.
"""

from dataclasses import replace
from typing import Literal

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.graphs.influence_paths import reaches
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.objective import AlterationObjective


def guarded(
    objective: Candidates[AlterationObjective], decisions: list[Decision], declines: bool = True
) -> list[Decision]:
    """Decisions after the rule above; guarding twice changes nothing.

    Args:
        objective: What was searched.
        decisions: One for each of the objective's situations, in order.
        declines: Whether to refuse and to keep from acting; otherwise a warning says why one should.

    Returns:
        The decisions, in order.
    """
    return [
        _improves(_linked(_within(objective, index, each), objective, declines), declines)
        for index, each in enumerate(decisions)
    ]


def guarded_sequence(objective: CounterfactualReturn, decision: Decision, declines: bool = True) -> Decision:
    """A decision for an episode after the same rule, its sequence replayed by the objective.

    Args:
        objective: What was searched.
        decision: Its decision.
        declines: Whether to keep from acting where the replay is no better than what was done; otherwise a
            warning says so.

    Raises:
        ValueError: if it changes more actions than are allowed, or one that is not open.
    """
    sequence, outcome = objective.sequence(decision), objective.outcome()
    if decision.alteration is None:
        return decision
    value = float(objective(sequence))
    found = list(objective.warnings())
    if abs(value - decision.value) > 1e-6 * max(1.0, abs(value), abs(outcome)):
        found.append(
            f"the search claims a return of {decision.value:.6g}; replayed by the model, it is {value:.6g}"
        )
    if not value > outcome:
        message = (
            f"no better than what was done by the model's own estimate ({value:.6g} against {outcome:.6g})"
        )
        if declines:
            return declined(_warned(decision, found), "no_action", message)
        found.append(message)
    return _warned(decision, found)


def linked(objective: Candidates[AlterationObjective], names: tuple[str, ...]) -> bool:
    """Whether setting variables can change an outcome by one of the surrogate's graphs; true where there is
    no surrogate to ask.
    """
    known = objective.surrogate
    return (
        known is None
        or not set(names) <= set(known.task.graph.names)
        or reaches(known.overlap.graphs, names, known.task.outcomes)
    )


def no_path(objective: Candidates[AlterationObjective], names: tuple[str, ...]) -> str:
    """What is said of variables without a path to an outcome."""
    assert objective.surrogate is not None
    where = (
        f"by the graph nothing leads from {', '.join(names)} to "
        f"{', '.join(objective.surrogate.task.outcomes)}"
    )
    return (
        f"{where}: setting it changes no outcome; draw the arrow that is missing, or take it out of what may "
        "be set"
    )


def _linked(decision: Decision, objective: Candidates[AlterationObjective], declines: bool) -> Decision:
    if decision.alteration is None or linked(objective, decision.alteration.names):
        return decision
    message = no_path(objective, decision.alteration.names)
    return declined(decision, "refused", message) if declines else _warned(decision, [f"graph: {message}"])


def _improves(decision: Decision, declines: bool) -> Decision:
    estimate, baseline = decision.estimate, decision.baseline
    if decision.alteration is None or estimate is None or baseline is None or estimate.point > baseline.point:
        return decision
    message = f"predicted no better than doing nothing ({estimate.point:.3f} against {baseline.point:.3f})"
    return declined(decision, "no_action", message) if declines else _warned(decision, [message])


def _within(objective: Candidates[AlterationObjective], index: int, decision: Decision) -> Decision:
    """The decision with a warning for everything that leaves the observations."""
    known = objective.surrogate
    if known is None or not known.overlap.known:
        return decision
    task, case = known.task, objective.cases[index]
    contexts = task.given([case])
    found = known.overlap.outside(task.context, contexts[0].tolist()) + known.overlap.contradictions()
    if decision.alteration is not None and set(decision.alteration.names) <= set(task.box.names):
        names, values = decision.alteration.names, decision.alteration.values
        found += known.overlap.outside(names, values.tolist())
        arrows = any(graph.descendants(names) & set(task.outcomes) for graph in known.overlap.graphs)
        if not arrows and reaches(known.overlap.graphs, names, task.outcomes):
            found.append(
                f"graph: {', '.join(names)} leads to {', '.join(task.outcomes)} through bi-directional edges "
                "alone; "
                "if they stand for a hidden common cause, setting it changes nothing"
            )
        if names in task.candidates:
            far, limit = (
                float(known.overlap.distance(names, contexts, values.unsqueeze(0))[0]),
                known.overlap.limit(names),
            )
            if far > limit + 1e-9:
                found.append(
                    f"support: the 5th nearest observation is {far:.2f} standard deviations away in context "
                    "and action; "
                    + (
                        f"99 % of the observations have theirs within {limit:.2f}: the answer is an "
                        "extrapolation"
                        if limit > 0
                        else "observations repeat the same few values, and this is none of them: the answer "
                        "lies between what was seen"
                    )
                )
    return _warned(decision, found)


def declined(decision: Decision, status: Literal["no_action", "refused"], reason: str) -> Decision:
    """The decision taken back: nothing is altered; the trace says what would have been set."""
    assert decision.alteration is not None
    would = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
    return replace(
        decision,
        alteration=None,
        status=status,
        reason=reason,
        trace=decision.trace | {"would_set": would},
    )


def _warned(decision: Decision, sentences: list[str]) -> Decision:
    return replace(decision, warnings=tuple(dict.fromkeys((*decision.warnings, *sentences))))
