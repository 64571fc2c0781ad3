"""Batched multi-start ascent in a box, by BoTorch's `optimize_acqf`.

All starts share each evaluation: one tensor of R points, one gradient. Every start has its own limited-memory
quasi-Newton matrix and line search, so that the result is that of R separate ascents in a box. After a few
steps, on a cheaper approximation of the function if there is one, only the best starts continue: which local
maximum is the highest shows long before it is reached. With linear limits besides the box, the few best
starts continue one by one by sequential quadratic programming.

What BoTorch is given is the function as an `AcquisitionFunction` in unit coordinates (`UnitAcquisition`). It
adds what `optimize_acqf` does not have: points without a finite value are turned back from, and a time budget
ends the ascent in the middle without losing its best points (`timeout_sec` would leave the batched path).

Source: Byrd et al. (1995) (L-BFGS-B); Kraft (1988) (sequential least squares); Balandat et al. (2020), Sec. 4
(batched restarts).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.optim.optimize import optimize_acqf
from torch import Tensor

from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.search.budget import UNLIMITED, Budget
from rehearsal_torch.spaces.candidate_region import CandidateRegion

Value = Callable[[Tensor], Tensor]
# Tolerances of L-BFGS-B: the decrease in units of the machine's precision, and the projected gradient.
FACTOR, GRADIENT = 1e9, 1e-5
# Tolerance of sequential quadratic programming.
QUADRATIC = 1e-10


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
    if len(points) > kept or region.limited:
        if screening_steps and not region.limited:
            points, _ = _ascended(coarse, points, screening_steps)
        else:
            with torch.no_grad():
                order = ranked(value(region.units(points))).argsort(descending=True, stable=True)
            points = points[order]
        points = torch.cat([starts[:sure], _apart(points)[:kept]])
    ends, values = _ascended(fine, points, steps)
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


class UnitAcquisition(AcquisitionFunction):
    """A function of points as an acquisition function of one candidate in unit coordinates.

    Points where value or gradient is not finite become flat and lower than all values so far, so that a line
    search turns back.

    Args:
        value: (R, d) in the actions' units -> (R,), each value a function of its own point only.
        region: The feasible region.
        budget: Ends the ascent.

    Attributes:
        evaluations: Number of points at which value and gradient were computed.
        holes: Whether one of them was not finite.
    """

    def __init__(self, value: Value, region: CandidateRegion, budget: Budget) -> None:
        super().__init__(model=None)  # type: ignore[arg-type]
        self.value, self.region, self.budget = value, region, budget
        self.evaluations, self.holes, self.lowest = 0, False, torch.inf
        self.points: Tensor | None = None
        self.values: Tensor | None = None

    def begin(self, starts: Tensor) -> None:
        """Forgets the points of an earlier ascent, and begins with starts (R, d) of unknown value."""
        self.points, self.values = starts, starts.new_full((len(starts),), -torch.inf)

    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates (..., 1, d) in unit coordinates, (...)."""
        flat = X.reshape(-1, X.shape[-1])
        if not X.requires_grad:
            with torch.no_grad():
                return self._tidy(self.value(self.region.units(flat)), None)[0].reshape(X.shape[:-2])
        self.evaluations += len(flat)
        with torch.enable_grad():
            at = flat.detach().requires_grad_(True)
            values = self.value(self.region.units(at))
            (gradients,) = torch.autograd.grad(values.sum(), at)
        values, gradients = self._tidy(values.detach(), gradients)
        self._note(at.detach(), values)
        # The value, with the gradient as its derivative.
        linear = ((flat - flat.detach()) * gradients).sum(-1)
        return (values + linear).reshape(X.shape[:-2])

    def _tidy(self, values: Tensor, gradients: Tensor | None) -> tuple[Tensor, Tensor]:
        slopes = values.new_zeros(len(values), 1) if gradients is None else gradients
        defined = values.isfinite() & slopes.isfinite().all(-1)
        self.lowest = min(self.lowest, float(values.where(defined, torch.inf).min()))
        if bool(defined.all()):
            return values, slopes
        self.holes = True
        floor = self.lowest - 1 - abs(self.lowest) if self.lowest < torch.inf else 0.0
        return values.where(defined, floor), slopes.where(defined.unsqueeze(-1), 0.0)

    def _note(self, points: Tensor, values: Tensor) -> None:
        """Keeps the best points, as many as there were starts.

        Raises:
            OutOfTimeError: if the budget is spent.
        """
        if self.budget.limit_s is None:
            return
        assert self.points is not None
        assert self.values is not None
        every, known = torch.cat([points, self.points]), torch.cat([values, self.values])
        best = known.argsort(descending=True, stable=True)[: len(self.points)]
        self.points, self.values = every[best], known[best]
        if self.budget.out():
            raise OutOfTimeError


class OutOfTimeError(Exception):
    """The budget was spent in the middle of an ascent."""


def _ascended(function: UnitAcquisition, starts: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """The end points (R, d) of ascents and their values (R,), best first; if the budget is spent, the best
    points so far.
    """
    function.begin(starts)
    unit = torch.stack([torch.zeros_like(starts[0]), torch.ones_like(starts[0])])
    settings: dict[str, bool | float | int | str] = {"maxiter": steps}
    limits = None
    if function.region.limited:
        settings |= {"ftol": QUADRATIC, "max_optimization_problem_aggregation_size": 1}
        places = torch.arange(starts.shape[-1], device=starts.device)
        limits = [
            (places, -normal, -float(offset))
            for normal, offset in zip(function.region.normals, function.region.offsets, strict=True)
        ]
    else:
        settings |= {"factr": FACTOR, "pgtol": GRADIENT}
    try:
        with torch.enable_grad():
            found, values = optimize_acqf(
                function,
                unit,
                q=1,
                num_restarts=len(starts),
                options=settings,
                inequality_constraints=limits,
                batch_initial_conditions=starts.unsqueeze(1),
                return_best_only=False,
                retry_on_optimization_warning=False,
            )
        assert values is not None
        points = found[:, 0]
    except OutOfTimeError:
        assert function.points is not None
        assert function.values is not None
        points, values = function.points, function.values
    order = values.argsort(descending=True, stable=True)
    return points[order], values[order]


def _apart(points: Tensor, radius: float = 1e-3) -> Tensor:
    """Drops points that coincide with a better one; (R, d), best first."""
    near = torch.cdist(points, points).tril(-1) + torch.ones_like(points[:, :1] @ points[:, :1].mT).triu()
    return points[(near > radius).all(-1)]
