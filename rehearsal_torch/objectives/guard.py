"""When a search must decline to act or warn: one rule for all searches.

    no_path     no directed path leads from the variables that would be set to an outcome: according to the
                graph, setting them has no effect
    no_gain     the method's own estimate is not above its estimate for no action, or, where the present
                values of what would be set are known, not above its estimate for leaving them as they are;
                where costs count, its net value is not (`objectives.net_value`)
    warned      the interval of the estimate contains the estimate for no action, or that of the gain over
                the present values contains zero, so that the gain may be chance; a context variable or an
                action lies outside its observed range; the decision is farther from the observations than
                97.5 % of them are from each other (`surrogates.overlap`); the observations contradict the
                graph

The distance of every alteration to its 5th nearest observation is in the trace, as ``distance``.

An objective applies the rule to the decisions that a search found for it (`Objective.guarded`). For an
episode, a proposed sequence is refused if what the model takes for noise can be predicted from state and
action (`objectives.guard`). Else it is replayed: if its return does not exceed the observed
one, the decision becomes no action; it is refused if not all members of an ensemble predict a gain, or if one
predicts a fall of a score that is guarded beside the reward (`Reward.guarded`: with and without the points of
doses); where the objective asks for no agreement (`CounterfactualReturn.agreement`), refusals are warnings.
If the return that the search claims differs from the replayed one, the decision carries a warning.

A search whose `declines` is False only gets warnings in place of a refusal or no action: presets that
reproduce a publication, and methods that learn online, where acting yields information.

Error of the model in the noise of an episode: why a model of transitions may not recommend.

A replay keeps the noise of the observed episode. Where the noise of a state that the reward reads can be
predicted from state and action on held-out units (`surrogates.noise_check`), it holds errors of the model,
and gains of a search are gains in these errors. With an R2 above .1 nothing is recommended: on a simulator of
another class, where claims of 2.8 came true by .04, it was .5 and more; where claims came true, about 0.
Where it is not known, the recommendation says so (`unknown_noise`).

A reward that names doses and no state (`Reward.reads_doses`, such as costs alone) reads no state.

Source: Qin et al. (2023), Sec. 4.2 (refusal as an answer); the rules are ours.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.estimates.percent import apart, beside, percents, points
from rehearsal_torch.data.finding import Finding, joined
from rehearsal_torch.graphs.influence_paths import reaches
from rehearsal_torch.objectives.net_value import nets_no_more, with_costs
from rehearsal_torch.objectives.present_values import changes_nothing, leaving, with_unchanged
from rehearsal_torch.surrogates.noise_check import FEWEST
from rehearsal_torch.surrogates.overlap import ROUNDING, SHARE

if TYPE_CHECKING:
    from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn

MOST = 0.1
"""The largest R2 of a state's noise with which a change is recommended."""


def model_error(objective: "CounterfactualReturn") -> Finding | None:
    """Why the model may not recommend, with the R2 of the states; None if it may, or nothing is known of its
    noise.
    """
    known = objective.surrogate.noise_shares()
    found = {name: known[name] for name in _read(objective) if known.get(name, 0.0) > MOST}
    if not found:
        return None
    states = ", ".join(f"{name} {share:.2g}" for name, share in found.items())
    return Finding(
        "model_error",
        "the model has errors where its answers come from: what it takes for noise of the rewarded states "
        f"can be predicted from state and action on held-out units (R2: {states}; at most {MOST:g} is noise) "
        "and would be carried on: train it longer (trainer.max_epochs, trainer.patience), allow "
        "it more (surrogate.member.mechanism.location_constant, surrogate.member.effects=dense), add the "
        "states that are missing, or reward others",
        found,
    )


def unknown_noise(objective: "CounterfactualReturn") -> Finding | None:
    """That a model of rows was never checked; None if it was, or the reward reads no state."""
    shares = objective.surrogate.predictable_noise
    if shares is None or len(shares) or not _read(objective):
        return None
    return Finding(
        "noise",
        "it is not known whether what the model takes for noise is noise: it was fitted with fewer "
        f"than {FEWEST} steps of training or of held-out units, or by an earlier version",
    )


def _read(objective: "CounterfactualReturn") -> tuple[str, ...]:
    """The states that the reward reads; all of them if it does not say."""
    reward = objective.reward
    return reward.reads or (() if reward.reads_doses else objective.surrogate.names)


if TYPE_CHECKING:
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.objectives.candidates import Candidates
    from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
    from rehearsal_torch.objectives.objective import AlterationObjective


def guarded(
    objective: "Candidates[AlterationObjective]", decisions: list[Decision], declines: bool = True
) -> list[Decision]:
    """Applies the rule of this module to decisions; applying it twice changes nothing. Returns the decisions,
    in order.

    Args:
        decisions: One decision for each case of the objective, in order.
        declines: Whether to refuse or to return no action; if False, a warning gives the reason instead.
    """
    compared, known = with_costs(objective.cases, with_unchanged(objective, decisions)), _Paths(objective)
    judged = [
        _improves(_linked(each, objective, known, declines), case, declines)
        for each, case in zip(_within(objective, known, compared), objective.cases, strict=True)
    ]
    return with_costs(objective.cases, judged)


class _Paths:
    """What the graphs and the observations say of sets of variables, found once for all cases."""

    def __init__(self, objective: "Candidates[AlterationObjective]") -> None:
        self.objective = objective
        self._linked: dict[tuple[str, ...], bool] = {}
        self._joined: dict[tuple[str, ...], bool] = {}
        self._contradictions: list[Finding] | None = None

    def linked(self, names: tuple[str, ...]) -> bool:
        """See `linked` of this module."""
        if names not in self._linked:
            self._linked[names] = linked(self.objective, names)
        return self._linked[names]

    def joined(self, names: tuple[str, ...]) -> bool:
        """Whether variables and outcomes are connected through bi-directional edges only."""
        if names not in self._joined:
            assert self.objective.surrogate is not None
            task, graphs = self.objective.surrogate.task, self.objective.surrogate.overlap.graphs
            arrows = any(graph.descendants(names) & set(task.outcomes) for graph in graphs)
            self._joined[names] = not arrows and reaches(graphs, names, task.outcomes)
        return self._joined[names]

    def contradictions(self) -> list[Finding]:
        """Where the observations contradict the graph."""
        if self._contradictions is None:
            assert self.objective.surrogate is not None
            self._contradictions = self.objective.surrogate.overlap.contradictions()
        return self._contradictions


def guarded_sequence(
    objective: "CounterfactualReturn", decision: Decision, declines: bool = True
) -> Decision:
    """Applies the same rule to the decision for an episode; the objective replays its sequence.

    Args:
        declines: Whether to return no action where the replayed return does not exceed the observed one, and
            to refuse where a member of an ensemble predicts no gain; if False, a warning says so.

    Raises:
        ValueError: if the decision changes more actions than allowed, or one that may not be changed.
    """
    sequence, outcome = objective.sequence(decision), objective.outcome()
    if decision.alteration is None:
        return decision
    value = float(objective(sequence))
    findings = list(objective.warnings())
    if abs(value - decision.value) > 1e-6 * max(1.0, abs(value), abs(outcome)):
        findings.append(
            Finding(
                "replay",
                f"the search claims a return of {decision.value:.6g}; replayed by the model, it is "
                f"{value:.6g}",
                {"claimed": decision.value, "replayed": value},
            )
        )
    against = model_error(objective)
    if against is None and not value > outcome:
        text = (
            f"by the model's own estimate no better than the observed actions ({value:.6g} against "
            f"{outcome:.6g})"
        )
        against = Finding("no_gain", text)
    against = against or _losing(objective, sequence) or _falling(objective, sequence)
    if against is not None and against.kind != "no_gain" and objective.agreement == "none":
        declines = False
    if against is not None and declines:
        return declined(_warned(decision, findings), against)
    return _warned(decision, [*findings, *(each for each in (unknown_noise(objective), against) if each)])


def _losing(objective: "CounterfactualReturn", sequence: Tensor) -> Finding | None:
    """That members of an ensemble predict no gain; None if all do."""
    if objective.surrogate.members == 1:
        return None
    gains = objective.member_returns(sequence) - objective.member_returns(objective.observed)
    losing = int((~(gains > 0)).sum())
    each = ", ".join(f"{gain:.4g}" for gain in gains.tolist())
    text = f"{losing} of the {len(gains)} members of the model predict no improvement (their gains: {each})"
    return Finding("losing_members", text) if losing else None


def _falling(objective: "CounterfactualReturn", sequence: Tensor) -> Finding | None:
    """That a guarded score falls by a member of the model; None if none does by more than rounding."""
    slack = objective.rounding(1e-9, max(1.0, abs(objective.outcome())))
    for name, gains in objective.guarded_gains(sequence).items():
        falling = int((~(gains >= -slack)).sum())
        if falling:
            each = ", ".join(f"{gain:.4g}" for gain in gains.tolist())
            who, whose = "the model predicts", "its gain"
            if len(gains) > 1:
                who = f"{falling} of the {len(gains)} members of the model predict"
                whose = "their gains"
            text = f"by the score {name}, {who} a worse outcome ({whose}: {each})"
            return Finding("falling_score", text)
    return None


def linked(objective: "Candidates[AlterationObjective]", names: tuple[str, ...]) -> bool:
    """Whether setting the variables can change an outcome according to one of the surrogate's graphs; True if
    the objective has no surrogate.
    """
    known = objective.surrogate
    return (
        known is None
        or not set(names) <= set(known.task.graph.names)
        or reaches(known.overlap.graphs, names, known.task.outcomes)
    )


def no_path(objective: "Candidates[AlterationObjective]", names: tuple[str, ...]) -> Finding:
    """What is said of variables without a directed path to an outcome."""
    assert objective.surrogate is not None
    names = objective.surrogate.task.variables(names)
    where = (
        f"the graph has no directed path from {', '.join(names)} to "
        f"{', '.join(objective.surrogate.task.outcomes)}"
    )
    return Finding(
        "no_path",
        f"{where}: setting {', '.join(names)} changes no outcome; add the missing edge to the graph, or "
        "remove it from the variables that may be set",
    )


def _linked(
    decision: Decision, objective: "Candidates[AlterationObjective]", known: _Paths, declines: bool
) -> Decision:
    if decision.alteration is None or known.linked(decision.alteration.names):
        return decision
    against = no_path(objective, decision.alteration.names)
    return declined(decision, against) if declines else _warned(decision, [against])


def _improves(decision: Decision, case: RehearsalCase, declines: bool) -> Decision:
    estimate, before = decision.estimate, decision.before
    if decision.alteration is None or estimate is None or before is None:
        return decision
    at_present = decision.unchanged is not None
    where = leaving(case, decision.alteration.names) if at_present else "doing nothing"
    net = decision.net_gain
    better = estimate.point > before.point if net is None else net.point > 0
    if not better:
        message = f"predicted no better than {where} ({beside(estimate.point, before.point)})"
        against = Finding("no_gain", message if net is None else nets_no_more(decision, where))
        if net is not None and declines and changes_nothing(decision, case):
            return replace(decision, alteration=None, reason=against)
        return declined(decision, against) if declines else _warned(decision, [against])
    apart, doubt = decision.gain if net is None else net, ""
    if apart is not None and apart.lower is not None and apart.upper is not None:
        if apart.lower <= 0:
            ends = f"{apart.lower:+.4g} to {apart.upper:+.4g}"
            if net is None:
                ends = " to ".join(points([apart.lower, apart.upper])) + " percentage points"
            what = "difference" if net is None else "net gain"
            doubt = f"the interval of the {what}, {ends}, contains zero"
    elif estimate.lower is not None and estimate.upper is not None and estimate.lower <= before.point:
        gives = "leaving it gives" if at_present else "no action gives"
        lower, upper, given = percents([estimate.lower, estimate.upper, before.point])
        doubt = f"the interval of the estimate, {lower} to {upper}, contains what {gives}, {given}"
    if not doubt:
        return decision
    text = f"not told apart from {where if at_present else 'no action'}: {doubt}"
    return _warned(decision, [Finding("gain", text)])


def _within(
    objective: "Candidates[AlterationObjective]", paths: _Paths, decisions: Sequence[Decision]
) -> list[Decision]:
    """Adds a warning for everything outside the observed data, and the distance to it."""
    known = objective.surrogate
    if known is None or not known.overlap.known:
        return list(decisions)
    task, overlap = known.task, known.overlap
    contexts = task.given(objective.cases)
    said = [each + paths.contradictions() for each in overlap.outside_each(task.context, contexts.tolist())]
    facts: list[dict[str, float]] = [{} for _ in decisions]
    # All cases in which the same variables are set, at once.
    actions = defaultdict[tuple[str, ...], dict[int, Tensor]](dict)
    for index, each in enumerate(decisions):
        if each.alteration is not None and set(each.alteration.names) <= set(task.box.names):
            actions[each.alteration.names][index] = each.alteration.values
    for names, of_case in actions.items():
        mine, values = list(of_case), torch.stack(list(of_case.values()))
        joined = [_joined(task, names)] if paths.joined(names) else []
        for index, beyond in zip(mine, overlap.outside_each(names, values.tolist()), strict=True):
            said[index] += beyond + joined
        if names not in task.candidates:
            continue
        limit = overlap.limit(names)
        for index, far in zip(mine, overlap.distance(names, contexts[mine], values).tolist(), strict=True):
            facts[index] = {"distance": round(far, 4)}
            if far > limit + ROUNDING:
                said[index].append(_far(far, limit))
    return [_warned(*each) for each in zip(decisions, said, facts, strict=True)]


def _joined(task: "RehearsalTask", names: tuple[str, ...]) -> Finding:
    set_to = ", ".join(task.variables(names))
    return Finding(
        "graph",
        f"{set_to} and {', '.join(task.outcomes)} are connected through bi-directional edges only; if "
        f"these stand for a hidden common cause, setting {set_to} changes nothing",
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


def declined(decision: Decision, reason: Finding) -> Decision:
    """Withdraws a decision: it no longer acts, and the trace holds what it ``would_set``."""
    assert decision.alteration is not None
    would = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
    return replace(
        decision,
        alteration=None,
        reason=reason,
        trace=decision.trace | {"would_set": would},
    )


def _warned(
    decision: Decision, findings: Sequence[Finding], facts: Mapping[str, float] | None = None
) -> Decision:
    whole = joined(decision.findings, findings)
    if whole == decision.findings and not facts:
        return decision
    return replace(decision, findings=whole, trace=decision.trace | dict(facts or {}))
