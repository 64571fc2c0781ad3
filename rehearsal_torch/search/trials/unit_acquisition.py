"""An objective as an acquisition function of BoTorch, in unit coordinates, and its ascent by `optimize_acqf`.

`UnitAcquisition` adds what `optimize_acqf` does not have: points without a finite value are turned back from,
and a time budget ends the ascent in the middle without losing its best points (`timeout_sec` would leave the
batched path). Coordinates with levels are `fixed_features` of the ascent, each start at its own.

Source: Byrd et al. (1995) (L-BFGS-B); Kraft (1988) (sequential least squares); Balandat et al. (2020), Sec. 4
(batched restarts).
"""

from collections.abc import Callable

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.optim.optimize import optimize_acqf
from torch import Tensor

from rehearsal_torch.search.budget import Budget
from rehearsal_torch.spaces.candidate_region import CandidateRegion, MixedRegion

Value = Callable[[Tensor], Tensor]
# Tolerances of L-BFGS-B: the decrease in units of the machine's precision, and the projected gradient.
FACTOR, GRADIENT = 1e9, 1e-5
# Tolerance of sequential quadratic programming.
QUADRATIC = 1e-10


class UnitAcquisition(AcquisitionFunction):
    """A function of points as an acquisition function of one candidate in unit coordinates.

    Points where value or gradient is not finite become flat and lower than all values so far, so that a line
    search turns back.

    Args:
        value: (R, d) in the actions' units -> (R,), each value a function of its own point only.
        region: The feasible region.

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
                values, _ = self._tidy(self.value(self.region.units(flat)), torch.zeros_like(flat))
                return values.reshape(X.shape[:-2])
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

    def _tidy(self, values: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        defined = values.isfinite() & slopes.isfinite().all(-1)
        self.lowest = min(self.lowest, float(values.where(defined, torch.inf).min()))
        if bool(defined.all()):
            return values, slopes
        self.holes = True
        floor = self.lowest - 1 - abs(self.lowest) if self.lowest < torch.inf else 0.0
        return values.where(defined, floor), slopes.where(defined.unsqueeze(-1), 0.0)

    def _note(self, points: Tensor, values: Tensor) -> None:
        """Keeps the best points, as many as there were starts."""
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


def ascended(function: UnitAcquisition, starts: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """The end points (R, d) of ascents from feasible starts (R, d), in unit coordinates, and their values
    (R,), best first; if the budget is spent, the best points so far.
    """
    function.begin(starts)
    region = function.region
    unit = torch.stack([torch.zeros_like(starts[0]), torch.ones_like(starts[0])])
    settings: dict[str, bool | float | int | str] = {"maxiter": steps}
    limits, held = None, None
    normals, offsets = region.normals, region.offsets
    if isinstance(region, MixedRegion):
        held = {coordinate: starts[:, coordinate] for coordinate in region.places}
        # A limit on coordinates with levels alone is satisfied by the starts.
        open_ = (normals[:, region.free] != 0).any(-1)
        normals, offsets = normals[open_], offsets[open_]
    if len(offsets):
        settings |= {"ftol": QUADRATIC, "max_optimization_problem_aggregation_size": 1}
        places = torch.arange(starts.shape[-1], device=starts.device)
        limits = [(places, -normal, -float(offset)) for normal, offset in zip(normals, offsets, strict=True)]
    else:
        settings |= {"factr": FACTOR, "pgtol": GRADIENT}
    try:
        with torch.enable_grad():
            candidates, values = optimize_acqf(
                function,
                unit,
                q=1,
                num_restarts=len(starts),
                options=settings,
                inequality_constraints=limits,
                fixed_features=held,
                batch_initial_conditions=starts.unsqueeze(1),
                return_best_only=False,
                retry_on_optimization_warning=False,
            )
        assert values is not None
        points = candidates[:, 0]
    except OutOfTimeError:
        assert function.points is not None
        assert function.values is not None
        points, values = function.points, function.values
    order = values.argsort(descending=True, stable=True)
    return points[order], values[order]
