"""When the changes of an episode are withdrawn, and what is said of them.

Where too few units had another dose in any comparable step (`objectives.change_rules`), nothing is changed,
because it cannot be told what that would have led to; where that is so only once earlier changes are made,
the decision says so, and is *may* at best.

A proposed sequence is withdrawn if what the model takes for noise can be predicted from state and action, or
if no action is seen to move any state that the reward reads (`mechanisms.bent_transition`): sparing a cost is
no gain where what it was paid for is not seen.
Else it is replayed: if its return does not exceed the observed one, there is no gain; it is also withdrawn if
not all members of an ensemble predict a gain, or if one predicts a fall of a score that is guarded beside the
reward (`Reward.guarded`: with and without the points of doses). Where the objective asks for no agreement
(`CounterfactualReturn.agreement`), only a missing gain withdraws. A return that the search claims and that
differs from the replayed one is a finding.

Error of the model in the noise of an episode: a replay keeps the noise of the observed episode. Where the
noise of a state that the reward reads can be predicted from state and action on held-out units
(`surrogates.transition`), it holds errors of the model, and gains of a search are gains in these errors.
With an R2 above .1 nothing is recommended: on a simulator of another class, where claims of 2.8 came true by
.04, it was .5 and more; where claims came true, about 0. Where it is not known, the recommendation says so
(`unknown_noise`). A reward that names doses and no state (`Reward.reads_doses`, such as costs alone) reads no
state.

Source: Qin et al. (2023), Sec. 4.2 (refusal as an answer); the rules are ours.
"""

from collections.abc import Sequence

from torch import Tensor

from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.surrogates.surrogate import FEWEST
from rehearsal_torch.surrogates.transition import PREDICTABLE

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
    return [_replayed(context, context.objective, each) for each in decisions]


def _replayed(context: Context, objective: CounterfactualReturn, decision: Decision) -> Decision:
    if decision.alteration is None:
        if not objective.changes or not bool(objective.offered.any()) or bool(objective.choices.any()):
            return decision
        trace = {**decision.trace, "proven": False, "gap": None}
        return decision.changed(reason=Finding("no_support", _UNSUPPORTED), trace=trace)
    sequence, outcome = objective.sequence(decision), objective.outcome()
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
    against = model_error(objective) or _unmoved(objective)
    least = 0.0 if objective.rules is None else objective.rules.least_gain
    if against is None and not value > outcome + least:
        better = "no better than the observed actions"
        if value > outcome:
            better = f"better than the observed actions by no more than the {least:g} asked for"
        text = f"by the model's own estimate {better} ({value:.6g} against {outcome:.6g})"
        against = Finding("no_gain", text)
    if against is None and objective.singles(sequence):
        text = (
            "the best sequence found has a single highest dose between two steps without it (rules.boluses)"
        )
        against = Finding("unqualified", text)
    against = against or _losing(objective, sequence) or _falling(objective, sequence)
    if against is None:
        return decision.told([*findings, *unknown_noise(objective), *_rare(objective, sequence)])
    decision = decision.told(findings)
    if context.declines and (against.kind == "no_gain" or objective.agreement != "none"):
        return decision.withdrawn(against)
    return decision.told([*unknown_noise(objective), *_rare(objective, sequence), against])


def _rare(objective: CounterfactualReturn, sequence: Tensor) -> list[Finding]:
    """That too few units had a dose in a step like the one to which the changes before it lead."""
    if objective.rules is None or not objective.rules.support or objective.support is None:
        return []
    least, found = objective.rules.support, objective.supports(sequence)
    few = {action_name(step): units for step, units in found.items() if units < least}
    if not few:
        return []
    units = ", ".join(f"{name} {count}" for name, count in few.items())
    text = f"after the changes before, fewer than {least} units had the dose in a comparable step: {units}"
    return [Finding("few_comparable", text, few)]


def _losing(objective: CounterfactualReturn, sequence: Tensor) -> Finding | None:
    """That members of an ensemble predict no gain; None if all do."""
    if objective.surrogate.members == 1:
        return None
    gains = objective.member_returns(sequence) - objective.member_returns(objective.observed)
    losing = int((~(gains > 0)).sum())
    each = ", ".join(f"{gain:.4g}" for gain in gains.tolist())
    text = f"{losing} of the {len(gains)} members of the model predict no improvement (their gains: {each})"
    return Finding("losing_members", text) if losing else None


def _falling(objective: CounterfactualReturn, sequence: Tensor) -> Finding | None:
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


def model_error(objective: CounterfactualReturn) -> Finding | None:
    """Why the model may not recommend, with the R2 of the states; None if it may, or nothing is known of its
    noise.
    """
    known = objective.surrogate.noise_shares()
    found = {name: known[name] for name in objective.read if known.get(name, 0.0) > PREDICTABLE}
    if not found:
        return None
    states = ", ".join(f"{name} {share:.2g}" for name, share in found.items())
    causes = objective.surrogate.noise_causes()
    seen = "; ".join(
        f"of {name}, {causes[name][0]:.0%} with other states of the same step, {causes[name][1]:.0%} by a "
        "level of each unit"
        for name in found
        if any(causes.get(name, ()))
    )
    seen = f" ({seen}: a closed form knows both, decision=closed_form)" if seen else ""
    return Finding(
        "model_error",
        "the model has errors where its answers come from: what it takes for noise of the rewarded states "
        f"can be predicted from state and action on held-out units (R2: {states}; at most {PREDICTABLE:g} is "
        f"noise){seen} and would be carried on: train longer (trainer.max_epochs, trainer.patience), allow "
        "more (surrogate.member.mechanism.location_constant, surrogate.member.effects=dense), add the "
        "states that are missing, or reward others",
        found,
    )


def _unmoved(objective: CounterfactualReturn) -> Finding | None:
    """That no action is seen to move a state that the reward reads; None if one is, or it reads none."""
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
    """That a model of rows was never checked; empty if it was, or the reward reads no state."""
    shares = objective.surrogate.predictable_noise
    if shares is None or len(shares) or not objective.read:
        return []
    text = (
        "it is not known whether what the model takes for noise is noise: it was fitted with fewer "
        f"than {FEWEST} steps of training or of held-out units, or by an earlier version"
    )
    return [Finding("noise", text)]
