"""Intervals for the gain of a recommended sequence, by models of units that did not choose it.

A search finds the actions at which the errors of its model are largest. The gain is therefore claimed by R
refits to other units (`surrogates.transition_ridge`). With g_r the gain of the sequence by refit r, m the
median of g and s its standard deviation, after g has twice been winsorised at three of them,

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

Source: Athey and Imbens (2016) (honest estimates); Kennedy and O'Hagan (2001) (errors of the form).
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
from rehearsal_torch.surrogates.transition import PREDICTABLE

GAIN, RETURN = "gain in return", "return"
LEVEL, NORMAL, FARTHEST = 0.95, 1.959963984540054, 3.0
FORM, PREDICTED = 0.2, 2.0


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
