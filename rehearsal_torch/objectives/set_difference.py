"""The difference of two alterations of different variables, with an interval that holds for both.

Alterations of the same variables are judged by one fit (`AlterationObjective.contrast`). Two sets of
variables have

joint draws     where both responses follow from draws of the same equations (`GaussianSuccess` under a linear
                model): an equation that both use has the same draws in both, so that the draws of the
                difference d_s = P_s(first) - P_s(second) are draws of its posterior, and the interval is
                their mean +- z std, as within one set;

no joint draws  where each set has a regression of its own (`kernel_value`, `outcome`): what is known of the
                dependence of the two errors is nothing. If P(first) lies in [l, u] and P(second) in [m, v],
                each with probability (1 + c) / 2, then by Bonferroni's inequality both do with probability c
                at least, and the difference then lies in [l - v, u - m]. This holds whatever their
                dependence, and is wider than an interval that knew it.

How often they hold the truth is measured by benchmarks/set_differences.py (docs/notebook.md has the figures).

Source: the bound is Bonferroni's; its use ours.
"""

from torch import Tensor

from rehearsal_torch.data.estimate import Estimate
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, difference, normal_quantile

JOINT = "both follow from the same draws of the equations"
CONSERVATIVE = (
    "conservative: each set of variables has a regression of its own, so that the interval allows for any "
    "dependence of the two errors"
)


def between_sets(
    first: AlterationObjective, one: Tensor, second: AlterationObjective, other: Tensor
) -> tuple[Estimate, str] | None:
    """By how much the first alteration of the only case, (1, k), exceeds the second, (1, m), each with the
    objective of its variables, and whether `JOINT` or `CONSERVATIVE`; None without intervals or a finite
    estimate.
    """
    return _jointly(first, one, second, other) or _apart(first, one, second, other)


def _jointly(
    first: AlterationObjective, one: Tensor, second: AlterationObjective, other: Tensor
) -> tuple[Estimate, str] | None:
    """The difference by joint draws; None if there are none."""
    if not isinstance(first, GaussianSuccess) or not isinstance(second, GaussianSuccess):
        return None
    drawn, beside = first.chances(one), second.chances(other)
    if drawn is None or beside is None or drawn.shape != beside.shape:
        return None
    apart = (drawn - beside)[:, 0]
    half = normal_quantile(first.level) * float(apart.std())
    point = float(apart.mean())
    known = difference(point, point - half, point + half, first.level)
    return None if known is None else (known, JOINT)


def _apart(
    first: AlterationObjective, one: Tensor, second: AlterationObjective, other: Tensor
) -> tuple[Estimate, str] | None:
    """The difference within Bonferroni's bound; None if one of the claims has no interval."""
    claim = _estimate(first.appraise(one))
    if claim is None or claim.level is None:
        return None
    each_level = (1 + claim.level) / 2
    wide, beside = first.at_level(each_level), second.at_level(each_level)
    if wide is None or beside is None:
        return None
    found, against = _estimate(wide.appraise(one)), _estimate(beside.appraise(other))
    if found is None or against is None:
        return None
    if found.lower is None or found.upper is None or against.lower is None or against.upper is None:
        return None
    known = difference(
        found.point - against.point, found.lower - against.upper, found.upper - against.lower, claim.level
    )
    return None if known is None else (known, CONSERVATIVE)


def _estimate(appraisals: list[Appraisal]) -> Estimate | None:
    """The estimate of the only case."""
    return appraisals[0].estimate
