"""Rules for changes of the actions of an episode: support, replay, model error, and what a sequence gains.

Where too few units had another dose in any comparable step (`objectives.change_rules`), nothing is changed,
because its consequences cannot be estimated; where that is so only once earlier changes are made, the
decision has a finding, and is *may* at best.

A proposed sequence is withdrawn if what the model takes for noise can be predicted from state and action, or
if no action is seen to move any state that the reward reads (`mechanisms.bent_transition`): sparing a cost is
no gain where what it was paid for is not seen.
Else it is replayed: if its return does not exceed the observed one, there is no gain; it is also withdrawn if
not all members of an ensemble predict a gain, or if one predicts a fall of a score that is guarded beside the
reward (`Reward.guarded`: with and without the points of doses). Where the objective asks for no agreement
(`CounterfactualReturn.agreement`), only a missing gain withdraws. A replayed return that differs from the one
claimed by the search is a finding.

Error of the model in the noise of an episode: a replay keeps the noise of the observed episode. Where the
noise of a state that the reward reads can be predicted from state and action on held-out units
(`surrogates.transition`), it holds errors of the model, and gains of a search are gains in these errors.
With an R2 above .1 nothing is recommended: on a simulator of another class, where claims of 2.8 came true by
.04, it was .5 and more; where claims came true, about 0. Where it is not known, there is a finding
(`unknown_noise`). A reward that names doses and no state (`Reward.reads_doses`, such as costs alone) reads no
state.

A search finds the actions at which the errors of its model are largest. The gain of a recommended sequence is
therefore claimed by R refits to other units, which did not choose it (`surrogates.transition_ridge`). With
g_r the gain of the sequence by refit r, m the median of g and s its standard deviation, after g has twice
been winsorised at three of them,

    m +- 1.96 sqrt(s^2 + (.2^2 + 2 R2) m^2),

where R2 is that of the noise of the states that the reward reads (`surrogates.transition`), 0 if negative. s
is the error of sampling and of where the bends are; the rest is that of the functional form, which refits of
one form share, and which is larger where noise can be predicted. With these factors the intervals hold 95 %
of the true gains in 40 worlds of other classes, with s alone 80 % (`problems.sequences.random_episodes`,
seeds 0 to 59, without those in which nothing is recommended or behaviour is nearly deterministic; in these 68
%).

The estimate of the return is the observed return plus the gain, which ends where no return can be larger, as
that of a score without any points (`Reward.greatest`). A gain that is not told from zero is *may*;
one that the claim does not confirm at all, or that is below the least gain asked for, is none, and the
actions stay as observed. The claim selects nothing else: of many small gains, those that pass by luck would
be reported. Where its own noise can be predicted, the claim is *may* at best. Used by
`claims.abstention_rules`.

The part of a changed action is what is lost as actions are put back one by one, from the last to the first.
A change whose part is not above zero is marked, and stays. If the claim dropped it, it would select: parts
scatter over refits, and those that are negative by luck would leave a gain that is too large. The interval
would no longer hold, and what is proven of the sequence would not hold of the rest, which the search's own
model finds worse. Fewer changes, or only larger gains, can be asked for before the search.

Source: Qin et al. (2023), Sec. 4.2 (refusal as an answer); Athey and Imbens (2016) (honest estimates);
Kennedy and O'Hagan (2001) (errors of the form).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.estimate import Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.surrogates.surrogate import FEWEST
from rehearsal_torch.surrogates.transition import PREDICTABLE

GAIN, RETURN = "gain in return", "return"
LEVEL, NORMAL, FARTHEST = 0.95, 1.959963984540054, 3.0
FORM, PREDICTED = 0.2, 2.0
_UNSUPPORTED = (
    "in no step did enough comparable units have another dose: what it would have led to cannot be told from "
    "these records"
)


def sequences(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions for an episode, replayed.

    Raises:
        ValueError: if a decision changes more actions than allowed, or one that may not be changed.
    """
    if not isinstance(context.objective, CounterfactualReturn):
        return list(decisions)
    return [_replayed(context, context.objective, decision) for decision in decisions]


def _replayed(context: Context, objective: CounterfactualReturn, decision: Decision) -> Decision:
    if decision.alteration is None:
        if not objective.changes or not bool(objective.offered.any()) or bool(objective.choices.any()):
            return decision
        trace = {**decision.trace, "proven": False, "gap": None}
        return decision.changed(reason=Finding("no_support", _UNSUPPORTED), trace=trace)
    sequence, observed = objective.sequence(decision), objective.outcome()
    replayed = float(objective(sequence))
    findings = list(objective.warnings())
    if abs(replayed - decision.value) > 1e-6 * max(1.0, abs(replayed), abs(observed)):
        findings.append(
            Finding(
                "replay",
                f"the search claims a return of {decision.value:.6g}; replayed by the model, it is "
                f"{replayed:.6g}",
                {"claimed": decision.value, "replayed": replayed},
            )
        )
    finding = model_error(objective) or _unmoved(objective)
    least_gain = 0.0 if objective.rules is None else objective.rules.least_gain
    if finding is None and not replayed > observed + least_gain:
        comparison = "no better than the observed actions"
        if replayed > observed:
            comparison = f"better than the observed actions by no more than the {least_gain:g} asked for"
        text = f"by the model's own estimate {comparison} ({replayed:.6g} against {observed:.6g})"
        finding = Finding("no_gain", text)
    if finding is None and objective.singles(sequence):
        text = (
            "the best sequence found has a single highest dose between two steps without it (rules.boluses)"
        )
        finding = Finding("unqualified", text)
    finding = finding or _losing(objective, sequence) or _falling(objective, sequence)
    if finding is None:
        return decision.told([*findings, *unknown_noise(objective), *_rare(objective, sequence)])
    decision = decision.told(findings)
    if context.declines and (finding.kind == "no_gain" or objective.agreement != "none"):
        return decision.withdrawn(finding)
    return decision.told([*unknown_noise(objective), *_rare(objective, sequence), finding])


def _rare(objective: CounterfactualReturn, sequence: Tensor) -> list[Finding]:
    """That too few units had a dose in a step like the one to which the changes before it lead."""
    if objective.rules is None or not objective.rules.support or objective.support is None:
        return []
    required, supports = objective.rules.support, objective.supports(sequence)
    rare = {action_name(step): units for step, units in supports.items() if units < required}
    if not rare:
        return []
    units = ", ".join(f"{name} {count}" for name, count in rare.items())
    text = f"after the changes before, fewer than {required} units had the dose in a comparable step: {units}"
    return [Finding("few_comparable", text, rare)]


def _losing(objective: CounterfactualReturn, sequence: Tensor) -> Finding | None:
    """That members of an ensemble predict no gain; None if all do."""
    if objective.surrogate.members == 1:
        return None
    gains = objective.member_returns(sequence) - objective.member_returns(objective.observed)
    losing = int((~(gains > 0)).sum())
    listed = ", ".join(f"{gain:.4g}" for gain in gains.tolist())
    text = f"{losing} of the {len(gains)} members of the model predict no improvement (their gains: {listed})"
    return Finding("losing_members", text) if losing else None


def _falling(objective: CounterfactualReturn, sequence: Tensor) -> Finding | None:
    """That a guarded score falls by a member of the model; None if none does by more than rounding."""
    slack = objective.rounding(1e-9, max(1.0, abs(objective.outcome())))
    for name, gains in objective.guarded_gains(sequence).items():
        falling = int((~(gains >= -slack)).sum())
        if falling:
            listed = ", ".join(f"{gain:.4g}" for gain in gains.tolist())
            subject, label = "the model predicts", "its gain"
            if len(gains) > 1:
                subject = f"{falling} of the {len(gains)} members of the model predict"
                label = "their gains"
            text = f"by the score {name}, {subject} a worse outcome ({label}: {listed})"
            return Finding("falling_score", text)
    return None


def model_error(objective: CounterfactualReturn) -> Finding | None:
    """That the noise of rewarded states can be predicted, with R2; None if it cannot, or is not known."""
    shares = objective.surrogate.noise_shares()
    predictable = {name: shares[name] for name in objective.read if shares.get(name, 0.0) > PREDICTABLE}
    if not predictable:
        return None
    states = ", ".join(f"{name} {share:.2g}" for name, share in predictable.items())
    causes = objective.surrogate.noise_causes()
    explained = "; ".join(
        f"of {name}, {causes[name][0]:.0%} with other states of the same step, {causes[name][1]:.0%} by a "
        "level of each unit"
        for name in predictable
        if any(causes.get(name, ()))
    )
    explained = f" ({explained}: a closed form knows both, decision=closed_form)" if explained else ""
    return Finding(
        "model_error",
        "the model has errors where its answers come from: what it takes for noise of the rewarded states "
        f"can be predicted from state and action on held-out units (R2: {states}; at most {PREDICTABLE:g} is "
        f"noise){explained} and would be carried on: train longer (trainer.max_epochs, trainer.patience), "
        "allow more (surrogate.member.mechanism.location_constant, surrogate.member.effects=dense), add the "
        "states that are missing, or reward others",
        predictable,
    )


def _unmoved(objective: CounterfactualReturn) -> Finding | None:
    """That no action moves any state that the reward reads; None if one does, or it reads none."""
    claimant, reward = objective.surrogate.claimant, objective.reward
    if claimant is None or not reward.reads or set(reward.reads) - set(claimant.unmoved):
        return None
    states = ", ".join(reward.reads)
    return Finding(
        "no_effect",
        f"no action is seen to move {states}: whether other actions would have done better cannot be told "
        "from these records",
    )


def unknown_noise(objective: CounterfactualReturn) -> list[Finding]:
    """That the noise of a model of rows was never checked; empty if it was, or the reward reads no state."""
    shares = objective.surrogate.predictable_noise
    if shares is None or len(shares) or not objective.read:
        return []
    text = (
        "it is not known whether what the model takes for noise is noise: it was fitted with fewer "
        f"than {FEWEST} steps of training or of held-out units, or by an earlier version"
    )
    return [Finding("noise", text)]


def sequence_gains(context: Context, decisions: Sequence[Decision]) -> list[Decision]:
    """The decisions for an episode with their gains; unchanged where the model has no claimant."""
    if not isinstance(context.objective, CounterfactualReturn):
        return list(decisions)
    return [_claimed(context, context.objective, decision) for decision in decisions]


def interval(gains: Tensor, error: float, largest: float = math.inf) -> Estimate:
    """The estimate of gains by R refits, (R,), with an error of the form as a share of the gain; none of its
    numbers exceeds the largest gain that is possible.
    """
    median = gains.median()
    deviations = gains - median
    for _ in range(2):
        scale = deviations.square().mean().sqrt()
        deviations = deviations.clamp(-FARTHEST * scale, FARTHEST * scale)
    point = float(median)
    half = NORMAL * math.hypot(float(deviations.square().mean().sqrt()), error * point)
    point, lower, upper = (min(end, largest) for end in (point, point - half, point + half))
    return Estimate(point, GAIN, lower, upper, LEVEL)


@torch.no_grad()
def _claimed(context: Context, objective: CounterfactualReturn, decision: Decision) -> Decision:
    if decision.alteration is None or decision.gain is not None:
        return decision
    claimant, sequence = objective.surrogate.claimant, objective.sequence(decision)
    changed, sequences = sorted(decision.actions(), reverse=True), [sequence]
    for step in changed:
        sequence = sequence.clone()
        sequence[step] = objective.observed[step]
        sequences.append(sequence)
    steps = objective.claimed(torch.stack(sequences))
    if claimant is None or steps is None:
        return decision
    gains = steps.sum(-1)
    finite = gains[gains.isfinite().all(1)]
    if len(finite) < len(gains) / 2:
        text = f"{len(gains) - len(finite)} of the {len(gains)} refits that claim have no finite answer"
        return decision.told([Finding("claim", text)])
    shares = claimant.noise_shares()
    noise_share = max([0.0, *(shares.get(name, 0.0) for name in objective.read)])
    error = math.sqrt(FORM**2 + PREDICTED * noise_share)
    outcome = objective.outcome()
    largest = objective.horizon * objective.reward.greatest - outcome
    gain = interval(finite[:, 0], error, largest)
    losses = (finite[:, :-1] - finite[:, 1:]).T
    parts = {action_name(step): interval(loss, error) for step, loss in zip(changed, losses, strict=True)}
    ends = [outcome + end for end in (gain.point, gain.lower or 0.0, gain.upper or 0.0)]
    estimate = Estimate(ends[0], RETURN, ends[1], ends[2], LEVEL)
    claimed = decision.changed(gain=gain, estimate=estimate, parts=parts)
    if noise_share > PREDICTABLE:
        text = (
            "what the model that claims this takes for noise can be predicted from state and action on "
            f"held-out units (R2 {noise_share:.2g}): it is wrong somewhere, and so may be the gain"
        )
        claimed = claimed.told([Finding("claim", text, {"share": noise_share})])
    least_gain = 0.0 if objective.rules is None else objective.rules.least_gain
    if gain.point > least_gain or not context.declines:
        return claimed
    amount = f"no more than the {least_gain:g} asked for" if gain.point > 0 else "nothing"
    text = f"by the units that had no say in the choice, it gains {amount} ({gain.point:.4g})"
    return claimed.withdrawn(Finding("no_gain", text, {"gain": gain.point}))
