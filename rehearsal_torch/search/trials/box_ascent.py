"""Batched multi-start ascent in a box, by BoTorch's `optimize_acqf`.

All starts share each evaluation: one tensor of R points, one gradient. Every start has its own limited-memory
quasi-Newton matrix and line search, so that the result is that of R separate ascents in a box. After a few
steps, on a cheaper approximation of the function if there is one, only the best starts continue: which local
maximum is the highest shows long before it is reached. With linear limits besides the box, the few best
starts continue one by one by sequential quadratic programming.

What BoTorch is given is the function as an `AcquisitionFunction` in unit coordinates (`unit_acquisition`).
Where actions have levels, or are held at a value, `mixed_ascent` takes the place of the steps above.

Source: Byrd et al. (1995) (L-BFGS-B); Kraft (1988) (sequential least squares); Balandat et al. (2020), Sec. 4
(batched restarts).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.search.trials.mixed_ascent import mixed_ascent
from rehearsal_torch.search.trials.unit_acquisition import UnitAcquisition, Value, ascended
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.mixed_region import MixedRegion


@dataclass(frozen=True)
class Ascent:
    """The end points of an ascent.

    Attributes:
        points: (R, d), in unit coordinates, best first.
        values: (R,).
        evaluations: Number of points at which value and gradient were computed.
    """

    points: Tensor
    values: Tensor
    evaluations: int


def ascend(
    value: Value,
    region: CandidateRegion,
    starts: Tensor,
    steps: int = 100,
    screening_steps: int = 8,
    kept: int = 6,
    rough: Value | None = None,
    sure: int = 0,
    budget: Budget = UNLIMITED,
) -> Ascent:
    """Maximises a function from many starts.

    Args:
        value: (R, d) in the actions' units -> (R,), each value a function of its own point only; of the order
            of one, since the tolerances are absolute (see `RewardFrame`).
        region: The feasible region.
        starts: (R, d), in unit coordinates.
        steps: Maximum number of quasi-Newton steps of the starts that continue.
        screening_steps: Steps after which starts are compared; 0 compares the starts themselves.
        kept: Number of starts that continue.
        rough: A cheaper approximation of the function, for the steps before starts are compared.
        sure: Number of leading starts that continue regardless of the comparison.
        budget: Ends the ascent after an evaluation; its end points are then the best that were evaluated.

    Raises:
        NoFiniteValueError: if neither a start nor an end point has a finite value.
    """
    starts = region.into(starts)
    fine = UnitAcquisition(value, region, budget)
    coarse = fine if rough is None else UnitAcquisition(rough, region, budget)
    points = starts
    if isinstance(region, MixedRegion):
        ends, values = mixed_ascent(fine, coarse, region, starts, steps, screening_steps, kept, sure)
    else:
        if len(points) > kept or region.limited:
            if screening_steps and not region.limited:
                points, _ = ascended(coarse, points, screening_steps)
            else:
                with torch.no_grad():
                    order = ranked(value(region.units(points))).argsort(descending=True, stable=True)
                points = points[order]
            points = torch.cat([starts[:sure], _apart(points)[:kept]])
        ends, values = ascended(fine, points, steps)
    if region.limited:
        # Rounding may put an end point slightly outside; one that is worse than its start is dropped.
        ends = torch.cat([region.into(ends), points])
    if region.limited or fine.holes or coarse.holes:
        with torch.no_grad():
            values = ranked(value(region.units(ends)))
        best_of_all(values)
    order = values.argsort(descending=True, stable=True)
    count = fine.evaluations + (coarse.evaluations if coarse is not fine else 0)
    return Ascent(ends[order], values[order], count)


def _apart(points: Tensor, radius: float = 1e-3) -> Tensor:
    """Drops points that coincide with a better one, and undefined ones but the first; (R, d), best first."""
    near = (torch.cdist(points, points) <= radius) | ~points.isfinite().all(-1, keepdim=True)
    return points[~near.tril(-1).any(-1)]
