"""Whether an action may be recommended although no row is near some of the points that speak for it.

Of the points at which an action is judged, the share S has no row near (`surrogates.outcome.near_rows`).
There success may be anything. If nothing succeeds there, the chance is at least P - S, so that at most

    lost = P(none) - max(0, P - S)

of the probability is lost by acting, with P(none) that of no action or, where the present values of what
would be set are known, of leaving them. An action may be recommended if

    S <= .1    or    lost <= .02:

rows speak for nearly all of it, or there is hardly anything to lose, as where success is rare without an
action. Of an action that is left at its present value nothing is asked: it is what it is compared with.

A search that maximises within the rule ends at its edge, where up to S of the cases may lose: in two worlds
in which some patients are dosed with little freedom (seeds 3 and 4), 6 and 9 of 20 decisions were worse than
no action by .02 at S <= .2, 3 and 3 at .1, and the mean gain in the worlds of the package (seed 900), by a
first form of the rule, was .377 at .2 and .376 at .1.

Source: ours; Manski (1990) (bounds by what is not observed being anything between 0 and 1).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal

MOST_BEYOND, MOST_LOST = 0.1, 0.02

UNKNOWN = Finding(
    "support",
    "it is not known whether rows are near: there are too few, or an earlier version fitted the "
    "model, which is to be fitted again",
)


def allowed(beyond: Tensor, value: Tensor, unaltered: Tensor, most: float = MOST_LOST) -> Tensor:
    """Whether actions may be recommended, given S, P and the chance of leaving things, (..., B) each -> (...,
    B) bool, if at most `most` may be lost; true where S is not known (NaN).
    """
    lost = unaltered.to(value) - (value - beyond.to(value)).clamp_min(0)
    return (beyond.to(value) <= MOST_BEYOND) | (lost <= most) | beyond.to(value).isnan()


def acceptable(beyond: Tensor, value: Tensor, unaltered: Tensor) -> Tensor:
    """`allowed` for a search, with a margin: it maximises the value by other draws than those that judge."""
    return allowed(beyond, value, unaltered, MOST_LOST / 2)


@torch.no_grad()
def unaltered(
    objective: AlterationObjective, none: Tensor, probability: Callable[[Tensor], Tensor]
) -> Tensor:
    """The probability that acting puts at risk, (B,): that of leaving what would be set at its present
    values, (B, k) -> (B,), where a case knows all of them, else that of no action, `none`.
    """
    known = {
        place: [case.present[name] for name in objective.names]
        for place, case in enumerate(objective.cases)
        if set(objective.names) <= set(case.present)
    }
    if not known:
        return none
    present, places = objective.lower.clone(), list(known)
    present[places] = present.new_tensor(list(known.values()))
    at_risk = none.clone()
    at_risk[places] = probability(present).to(none)[places]
    return at_risk


def withheld(appraisals: Sequence[Appraisal], beyond: Tensor, unaltered: Tensor) -> list[Appraisal]:
    """The appraisals of B cases with ``beyond``, S, in the trace, and why an action may not be recommended; a
    warning where S is not known (NaN).
    """
    found = []
    for each, share, before in zip(appraisals, beyond.tolist(), unaltered.tolist(), strict=True):
        if math.isnan(share):
            found.append(replace(each, findings=(*each.findings, UNKNOWN)))
            continue
        made, point = replace(each, trace=each.trace | {"beyond": round(share, 4)}), each.estimate
        if point is not None and not each.refused:
            one, two, three = torch.tensor((share, point.point, before), dtype=torch.float64)
            if not bool(allowed(one, two, three)):
                made = replace(made, unsupported=_reason(share, point.point, before))
        found.append(made)
    return found


def _reason(share: float, point: float, before: float) -> Finding:
    here, most, chance, lost = percents([share, MOST_BEYOND, point, before - max(0.0, point - share)])
    return Finding(
        "no_support",
        f"no support: for {here} of such cases no row is near this action (at most {most} may be so): the "
        f"estimate of {chance} continues the model's form, and if nothing succeeds there, {lost} of the "
        "probability is lost; collect rows there, or offer actions that such cases have had",
        {"beyond": share},
    )
