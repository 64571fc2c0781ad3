"""Batched multi-start ascent in a box.

All starts share each evaluation: one tensor of R points, one gradient. Every start has its own limited-memory
quasi-Newton matrix and line search, so that the result is that of R separate ascents in a box. After a few
steps, on a cheaper approximation of the function if there is one, only the best starts continue: which local
maximum is the highest shows long before it is reached.

With linear limits besides the box, the few best starts continue one by one by sequential quadratic
programming.

Source: Byrd et al. (1995) (L-BFGS-B); Kraft (1988) (sequential least squares); Balandat et al. (2020), Sec. 4
(batched restarts).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from scipy.optimize import LinearConstraint, minimize
from torch import Tensor

from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.spaces.candidate_region import CandidateRegion

Value = Callable[[Tensor], Tensor]


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
        budget: Ends the ascent after an evaluation; each start then ends at the best point it has reached.

    Raises:
        NoFiniteValueError: if neither a start nor an end point has a finite value.
    """
    starts, count = region.into(starts), 0
    lowest, holes = torch.inf, False

    def both(flat: np.ndarray, function: Value = value) -> tuple[np.ndarray, np.ndarray]:
        nonlocal count, lowest, holes
        count += len(flat)
        with torch.enable_grad():
            at = torch.from_numpy(flat).to(starts).requires_grad_(True)
            values = function(region.units(at))
            (gradients,) = torch.autograd.grad(values.sum(), at)
        values, defined = values.detach(), values.isfinite() & gradients.isfinite().all(-1)
        if not bool(defined.all()):
            # Undefined points become flat and lower than all values so far, so that a line search turns back.
            holes, lowest = True, min(lowest, float(values.where(defined, torch.inf).min()))
            floor = lowest - 1 - abs(lowest) if lowest < torch.inf else 0.0
            values, gradients = values.where(defined, floor), gradients.where(defined.unsqueeze(-1), 0.0)
        return -values.cpu().numpy(), -gradients.cpu().numpy()

    def ascended(points: Tensor, max_steps: int, function: Value = value) -> tuple[Tensor, Tensor]:
        bounds = [(0.0, 1.0)] * points.shape[-1]
        best = _Best(points.cpu().numpy())

        def watched(flat: np.ndarray, batch_indices: list[int]) -> tuple[np.ndarray, np.ndarray]:
            values, gradients = both(flat, function)
            best.note(batch_indices, flat, values)
            if budget.out():
                raise _OutOfTimeError
            return values, gradients

        try:
            found, values, _ = fmin_l_bfgs_b_batched(
                watched,
                points.cpu().numpy(),
                bounds,
                maxiter=max_steps,
                factr=1e9,
                pgtol=1e-5,
                pass_batch_indices=True,
            )
        except _OutOfTimeError:
            found, values = best.points, best.losses
        order = np.argsort(values, kind="stable")
        return torch.from_numpy(found[order]).to(points), torch.from_numpy(-values[order]).to(points)

    points, values = starts, None
    if len(points) > kept or region.limited:
        if screening_steps and not region.limited:
            points, values = ascended(points, screening_steps, value if rough is None else rough)
        else:
            with torch.no_grad():
                values = ranked(value(region.units(points)))
            order = values.argsort(descending=True, stable=True)
            points, values = points[order], values[order]
        points = torch.cat([starts[:sure], _apart(points)[:kept]])
    points, values = (
        _limited(both, region, points, steps, budget) if region.limited else ascended(points, steps)
    )
    if holes:
        with torch.no_grad():
            values = ranked(value(region.units(points)))
        best_of_all(values)
        order = values.argsort(descending=True, stable=True)
        points, values = points[order], values[order]
    return Ascent(points, values, count)


def _apart(points: Tensor, radius: float = 1e-3) -> Tensor:
    """Drops points that coincide with a better one; (R, d), best first."""
    near = torch.cdist(points, points).tril(-1) + torch.ones_like(points[:, :1] @ points[:, :1].mT).triu()
    return points[(near > radius).all(-1)]


def _limited(
    both: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    region: CandidateRegion,
    starts: Tensor,
    steps: int,
    budget: Budget,
) -> tuple[Tensor, Tensor]:
    """The ascent of each start within box and linear limits, best first; starts that the budget does not
    reach stay unchanged.
    """
    begin = starts.cpu().numpy()
    best = _Best(begin)

    limits = LinearConstraint(region.normals.cpu().numpy(), -np.inf, region.offsets.cpu().numpy())
    bounds = [(0.0, 1.0)] * starts.shape[-1]
    settings = {"maxiter": steps, "ftol": 1e-10}
    ends = []
    for place, start in enumerate(begin):

        def one(flat: np.ndarray, place: int = place) -> tuple[float, np.ndarray]:
            inside = flat[None].clip(0.0, 1.0)
            values, gradients = both(inside)
            best.note([place], inside, values)
            if budget.out():
                raise _OutOfTimeError
            return float(values[0]), gradients[0]

        try:
            found = minimize(
                one, start, jac=True, method="SLSQP", bounds=bounds, constraints=[limits], options=settings
            )
            ends.append(found.x)
        except _OutOfTimeError:
            ends += [*best.points[place:]]
            break
    # Rounding may put an end point slightly outside; one that is worse than its start is dropped.
    points = torch.cat([region.into(torch.from_numpy(np.stack(ends)).to(starts)), starts])
    values = torch.from_numpy(-both(points.cpu().numpy())[0]).to(starts)
    order = values.argsort(descending=True, stable=True)
    return points[order], values[order]


class _OutOfTimeError(Exception):
    """The budget was spent in the middle of an ascent."""


class _Best:
    """The best point that each of R ascents has evaluated.

    Attributes:
        points: (R, d); initially the starts.
        losses: (R,), minus the value; infinite where nothing was evaluated.
    """

    def __init__(self, starts: np.ndarray) -> None:
        self.points, self.losses = starts.copy(), np.full(len(starts), np.inf)

    def note(self, places: list[int], points: np.ndarray, losses: np.ndarray) -> None:
        """Records points that some of the ascents have evaluated."""
        at = np.asarray(places)
        better = losses < self.losses[at]
        self.points[at[better]], self.losses[at[better]] = points[better], losses[better]
