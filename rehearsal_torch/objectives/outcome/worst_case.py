"""Whether an action may be recommended although no row is near some of the points that speak for it.

Of the points at which an action is judged, the share S has no row near (`surrogates.outcome.near_rows`).
There success may be anything. If nothing succeeds there, the chance is at least P - S, so that at most

    lost = P(none) - max(0, P - S)

of the probability is lost by acting, with P(none) that of no action or, where the present values of what
would be set are known, of leaving them. An action may be recommended if

    S <= .1    or    lost <= .02:

rows speak for nearly all of it, or there is hardly anything to lose, as where success is rare without an
action. With S > .5 the estimate itself is withdrawn: for most of it, it is the model's form continued.

A search that maximises within the rule ends at its edge, where up to S of the cases may lose: in two worlds
in which some patients are dosed with little freedom (seeds 3 and 4), 6 and 8 of 20 decisions were worse than
no action by .02 at S <= .2, 3 and 3 at .1, and the mean gain in the worlds of the package (seed 900) was the
same, .377.

Source: ours; Manski (1990) (bounds by what is not observed being anything between 0 and 1).
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rehearsal_torch.data.estimates.percent import percents
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal

MOST_BEYOND, MOST_LOST, MOSTLY = 0.1, 0.02, 0.5


def allowed(beyond: Tensor, value: Tensor, unaltered: Tensor) -> Tensor:
    """Whether actions may be recommended, (..., B) each -> (..., B) bool.

    Args:
        beyond: S.
        value: P.
        unaltered: P(none), or that of leaving the present values, (B,).
    """
    lost = unaltered.to(value) - (value - beyond.to(value)).clamp_min(0)
    return (beyond.to(value) <= MOST_BEYOND) | (lost <= MOST_LOST)


@torch.no_grad()
def unaltered(objective: AlterationObjective, none: Tensor) -> Tensor:
    """The probability that acting puts at risk, (B,): that of leaving what would be set at its present
    values where a case knows all of them, else that of no action.

    Args:
        objective: Gives probabilities.
        none: That of no action, (B,).
    """
    known = {
        place: [case.present[name] for name in objective.names]
        for place, case in enumerate(objective.cases)
        if set(objective.names) <= set(case.present)
    }
    if not known:
        return none
    present = objective.lower.clone()
    for place, values in known.items():
        present[place] = present.new_tensor(values)
    stated = objective(present).to(none)
    return torch.stack([stated[place] if place in known else each for place, each in enumerate(none)])


def withheld(appraisals: Sequence[Appraisal], beyond: Tensor, unaltered: Tensor) -> list[Appraisal]:
    """The appraisals with ``beyond``, S, in the trace, and why an action may not be recommended.

    Args:
        appraisals: One for each of B cases.
        beyond: S of their actions, (B,).
        unaltered: See `allowed`, (B,).
    """
    found = []
    for each, share, before in zip(appraisals, beyond.tolist(), unaltered.tolist(), strict=True):
        made, point = replace(each, trace=each.trace | {"beyond": round(share, 4)}), each.estimate
        if point is not None and not each.refused:
            numbers = (torch.tensor(number, dtype=torch.float64) for number in (share, point.point, before))
            if not bool(allowed(*numbers)):
                reason = _reason(share, point.point, before)
                made = replace(made, refused=reason) if share > MOSTLY else replace(made, unsupported=reason)
        found.append(made)
    return found


def _reason(share: float, point: float, before: float) -> str:
    here, most, chance, lost = percents([share, MOST_BEYOND, point, before - max(0.0, point - share)])
    return (
        f"no support: for {here} of such cases no row is near this action (at most {most} may be so): the "
        f"estimate of {chance} continues the model's form, and if nothing succeeds there, {lost} of the "
        "probability is lost; collect rows there, or offer actions that such cases have had"
    )
