"""What a recommended sequence gains, claimed by a model that had no say in what was chosen.

A search finds the actions at which the errors of its model are largest. The gain is therefore claimed by R
refits to other units (`surrogates.transition_ridge`). With g_r the gain of the sequence by refit r, m the
median of g and s its standard deviation, before which those beyond three of them are twice drawn in to three,

    m +- 1.96 sqrt(s^2 + (.2^2 + 2 R2) m^2),

where R2 is that of the noise of the states that the reward reads (`surrogates.transition`), 0 if negative. s
is the error of sampling and of where the bends are; the rest is that of the form: what refits of one form
agree in may be wrong all the same, and more so where noise can be predicted. With these factors the
intervals hold 95 % of the true gains in 40 worlds of other classes, with s alone 80 %
(`problems.sequences.random_episodes`, seeds 0 to 59, without those in which nothing is recommended or
behaviour is nearly deterministic; in these they hold 68 %).

The estimate of the return is the observed return plus the gain. What is not told from zero is *may*; a gain
that the claim does not confirm at all, or below what was asked for, is none, and the actions stay as they
were. Beside that, the claim has no say: of many small gains, those that pass by luck would be reported. Where
its own noise can be predicted, the claim is *may* at best.

The part of a changed action is what is lost as actions are put back one by one, from the last to the first.

Source: Athey and Imbens (2016) (honest estimates); Kennedy and O'Hagan (2001) (errors of the form); the
intervals are ours.
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
    """The decisions for an episode with what they gain; unchanged where the model has none who claim it."""
    if not isinstance(context.objective, CounterfactualReturn):
        return list(decisions)
    return [_claimed(context, context.objective, each) for each in decisions]


def interval(gains: Tensor, error: float) -> Estimate:
    """The estimate of gains by R refits, (R,), with an error of the form as a share of the gain."""
    middle = gains.median()
    away = gains - middle
    for _ in range(2):
        scale = away.square().mean().sqrt()
        away = away.clamp(-FARTHEST * scale, FARTHEST * scale)
    point = float(middle)
    wide = NORMAL * math.hypot(float(away.square().mean().sqrt()), error * point)
    return Estimate(point, GAIN, point - wide, point + wide, LEVEL)


@torch.no_grad()
def _claimed(context: Context, objective: CounterfactualReturn, decision: Decision) -> Decision:
    if decision.alteration is None or decision.gain is not None:
        return decision
    claimant, left = objective.surrogate.claimant, objective.sequence(decision)
    changed, sequences = sorted(decision.actions(), reverse=True), [left]
    for step in changed:
        left = left.clone()
        left[step] = objective.observed[step]
        sequences.append(left)
    steps = objective.claimed(torch.stack(sequences))
    if claimant is None or steps is None:
        return decision
    gains = steps.sum(-1)
    known = gains[gains.isfinite().all(1)]
    if len(known) < len(gains) / 2:
        text = f"{len(gains) - len(known)} of the {len(gains)} refits that claim have no finite answer"
        return decision.told([Finding("claim", text)])
    shares = claimant.noise_shares()
    worst = max([0.0, *(shares.get(name, 0.0) for name in objective.read)])
    error = math.sqrt(FORM**2 + PREDICTED * worst)
    gain = interval(known[:, 0], error)
    lost = (known[:, :-1] - known[:, 1:]).T
    parts = {action_name(step): interval(each, error) for step, each in zip(changed, lost, strict=True)}
    outcome = objective.outcome()
    total = [outcome + end for end in (gain.point, gain.lower or 0.0, gain.upper or 0.0)]
    estimate = Estimate(total[0], RETURN, total[1], total[2], LEVEL)
    claimed = decision.changed(gain=gain, estimate=estimate, parts=parts)
    if worst > PREDICTABLE:
        text = (
            "what the model that claims this takes for noise can be predicted from state and action on "
            f"held-out units (R2 {worst:.2g}): it is wrong somewhere, and so may be the gain"
        )
        claimed = claimed.told([Finding("claim", text, {"share": worst})])
    least = 0.0 if objective.rules is None else objective.rules.least_gain
    if gain.point > least or not context.declines:
        return claimed
    what = f"no more than the {least:g} asked for" if gain.point > 0 else "nothing"
    text = f"by the units that had no say in the choice, it gains {what} ({gain.point:.4g})"
    return claimed.withdrawn(Finding("no_gain", text, {"gain": gain.point}))
