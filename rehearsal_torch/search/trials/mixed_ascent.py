"""Multi-start ascent by BoTorch's `optimize_acqf`, also where some coordinates have levels: the others ascend
at fixed levels.

How levels are chosen depends on how many combinations of levels there are:

    at most 64                      every combination gets its best starts, and all ascend in one batch (what
                                    `optimize_acqf_mixed` does one combination after the other)
    at most 4096, no other          every combination is evaluated, by the approximation first if there are
    coordinate                      more than 512
    more                            alternating: an ascent at the levels of each start, then each coordinate's
                                    best other level, until neither gains (`optimize_acqf_mixed_alternating`)

The ends of the first alternate as well. Coordinates with more than 20 levels take any value between them in
the first steps of an alternation, and are then brought to the nearest level. Under linear limits a change of
level moves the other coordinates back inside.

Continuous steps are BoTorch's `optimize_acqf` with the levels of each start as its `fixed_features`.
`optimize_acqf_mixed_alternating` itself takes no starts, so that neither the visited actions nor the
maximiser of the posterior mean could be among them, draws its own from the global random number generator,
ascends from one start at a time, returns one point, and takes the end of a time budget in its initialisation
for a failure. Both were compared on 192 searches in fitted networks (three objectives, 8 to 625 combinations
beside one to three other coordinates):

    more than 1e-3 below the best value found (median seconds)      to 64 combinations      more
    every combination                                               0 of 120 (.14)          1 of 72 (.30)
    alternating                                                     2 of 120 (.09)          2 of 72 (.15)
    `optimize_acqf_mixed_alternating`                               6 of 120 (.20)          5 of 72 (.31)
    `optimize_acqf_mixed`, to 32 combinations                       2 of 96 (.35)

Without levels, all starts share each evaluation: one tensor of R points, one gradient. Every start has its
own limited-memory quasi-Newton matrix and line search, so that the result is that of R separate ascents in a
box. After a few steps, on a cheaper approximation of the function if there is one, only the best starts
continue: which local maximum is the highest shows long before it is reached. With linear limits besides the
box, the few best starts continue one by one by sequential quadratic programming.

BoTorch is given the function as an acquisition function in unit coordinates. `UnitAcquisition` adds what
`optimize_acqf` does not have: points without a finite value are turned back from, and a time budget ends the
ascent in the middle without losing its best points (`timeout_sec` would leave the batched path).

Source: Balandat et al. (2020), Sec. 4 (batched restarts); Wan et al. (2021) (interleaved search of mixed
spaces); Byrd et al. (1995) (L-BFGS-B); Kraft (1988) (sequential least squares); the bounds are those of
BoTorch (20 levels), or measured as above.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.optim.optimize import optimize_acqf
from torch import Tensor

from rehearsal_torch.data.finite import best_of_all, ranked
from rehearsal_torch.search.search import UNLIMITED, Budget
from rehearsal_torch.spaces.candidate_region import CandidateRegion, MixedRegion

Value = Callable[[Tensor], Tensor]
# Tolerances of L-BFGS-B: the decrease in units of the machine's precision, and the projected gradient.
FACTOR, GRADIENT = 1e9, 1e-5
# Tolerance of sequential quadratic programming.
QUADRATIC = 1e-10


class UnitAcquisition(AcquisitionFunction):
    """A function, (R, d) in the actions' units -> (R,), as an acquisition function in a region's unit
    coordinates.

    Points where value or gradient is not finite (`holes`) become flat and lower than all values so far, so
    that a line search turns back.
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
    """The ends (R, d) of ascents from starts (R, d), in unit coordinates, and their values, best first."""
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


@dataclass(frozen=True)
class Ascent:
    """The end points of an ascent."""

    points: Tensor  # (R, d), in unit coordinates, best first
    values: Tensor  # (R,)
    evaluations: int  # Number of points at which value and gradient were computed


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
    """Maximises a function from many starts, (R, d) in unit coordinates.

    Args:
        value: (R, d) in the actions' units -> (R,), each value a function of its own point only; of the order
            of one, since the tolerances are absolute (see `RewardFrame`).
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
            points = torch.cat([starts[:sure], _distinct(points)[:kept]])
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


def _distinct(points: Tensor, radius: float = 1e-3) -> Tensor:
    """Drops points that coincide with a better one, and undefined ones but the first; (R, d), best first."""
    near = (torch.cdist(points, points) <= radius) | ~points.isfinite().all(-1, keepdim=True)
    return points[~near.tril(-1).any(-1)]


# Combinations of levels that are all ascended from, or all evaluated if there is no other coordinate.
ASCENDED, EVALUATED = 64, 4096
# Starts at all combinations together, in numbers of starts; and how many times `kept` continue: in one batch,
# or (linear limits) one by one.
SPREAD, TOGETHER, ONE_BY_ONE = 4, 8, 2
# Levels of a coordinate beyond which it is relaxed at first, and only adjacent levels are tried.
RELAXED = 20
# Alternations of ascents and changes of levels, changes in a row, and the gain below which there is none.
ALTERNATIONS, CHANGES, GAIN = 32, 4, 1e-9
# Maximum number of points that are evaluated in one tensor.
CHUNK = 512
# Number of points that ascend until nothing is gained.
LAST = 2
# Free coordinates closer than this, at the same levels, are one point.
SAME = 1e-3


def mixed_ascent(
    fine: UnitAcquisition,
    coarse: UnitAcquisition,
    region: MixedRegion,
    starts: Tensor,
    steps: int,
    screening_steps: int,
    kept: int,
    sure: int,
) -> tuple[Tensor, Tensor]:
    """The end points (R, d) of ascents, at levels, and their values (R,), best first; see `ascend`. Eight
    times `kept` starts continue; twice under linear limits. `coarse` approximates `fine`.
    """
    if not region.free and region.combinations <= EVALUATED:
        return _enumerated(fine, coarse, region, starts, max(kept, len(starts)))
    most = kept * (ONE_BY_ONE if region.limited else TOGETHER)
    points = _begun(coarse, region, starts, screening_steps, most)
    points, values = _climbed(fine, region, torch.cat([starts[:sure], points]), steps)
    ended, reached = [points[:0]], [values[:0]]
    for _ in range(ALTERNATIONS):
        moved, others = _exchanged(fine, region, points, values, CHANGES)
        changed = others > values
        ended.append(moved[~changed])
        reached.append(others[~changed])
        points, values = moved[changed], others[changed]
        if not len(points) or fine.budget.out():
            break
        points, values = _climbed(fine, region, points, steps)
        apart = _apart(region, points)
        points, values = points[apart], values[apart]
    points, values = torch.cat([*ended, points]), torch.cat([*reached, values])
    order = values.argsort(descending=True, stable=True)
    return _finished(fine, region, points[order], values[order], steps)


def _begun(function: UnitAcquisition, region: MixedRegion, starts: Tensor, steps: int, most: int) -> Tensor:
    """The starts that continue, (<= most, d): after some steps the best of every combination of levels, then
    others, or the best of all where there are many combinations.
    """
    every = region.combinations <= ASCENDED
    loose = region if every else region.relaxed(RELAXED)
    if every:
        points, values = _crossed(function, region, starts)
    else:
        points, values = _exchanged(function, region, starts, evaluated(function, starts), 1)
    if steps and not region.limited and not (isinstance(loose, MixedRegion) and not loose.free):
        relaxed = UnitAcquisition(function.value, loose, function.budget)
        points, values = ascended(relaxed, points, steps)
        function.evaluations += relaxed.evaluations
        if loose is not region:
            points = region.into(points)
            values = evaluated(function, points)
    points = points[values.argsort(descending=True, stable=True)]
    points = points[_apart(region, points)]
    if every:
        points = points[(~_first_of_levels(region, points)).long().argsort(stable=True)]
    return points[:most]


@torch.no_grad()
def evaluated(function: UnitAcquisition, points: Tensor) -> Tensor:
    """The values of points (n, d), (n,); once the budget is spent, minus infinity."""
    values = points.new_full((len(points),), -torch.inf)
    for begin in range(0, len(points), CHUNK):
        if begin and function.budget.out():
            break
        part = slice(begin, begin + CHUNK)
        values[part] = function(points[part].unsqueeze(1))
    return values


def _enumerated(
    fine: UnitAcquisition, coarse: UnitAcquisition, region: MixedRegion, starts: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The best of all combinations of levels, by the approximation first where there are many."""
    every = region.every()
    points = torch.cat([starts, every[region.contains(every)]])
    if len(points) > CHUNK:
        points = points[evaluated(coarse, points).topk(CHUNK).indices]
    values = evaluated(fine, points)
    order = values.argsort(descending=True, stable=True)
    order = order[_apart(region, points[order])][:count]
    return points[order], values[order]


def _crossed(function: UnitAcquisition, region: MixedRegion, starts: Tensor) -> tuple[Tensor, Tensor]:
    """The best starts at every feasible combination of levels, (n, d), and their values, (n,)."""
    every = region.every()
    points = starts.unsqueeze(0).repeat(len(every), 1, 1)
    points[..., region.places] = every.unsqueeze(1)
    moved, feasible = region.slices(points.flatten(0, 1))
    values = moved.new_full((len(moved),), -torch.inf)
    values[feasible] = evaluated(function, moved[feasible])
    # Unevaluated points, for lack of time, come after evaluated ones and before infeasible ones.
    ranking = values.clamp_min(-torch.finfo(values.dtype).max).where(feasible, values)
    count = min(len(starts), max(1, SPREAD * len(starts) // len(every)))
    best = ranking.reshape(len(every), -1).topk(count, -1).indices
    chosen = (best + len(starts) * torch.arange(len(every), device=best.device).unsqueeze(-1)).flatten()
    chosen = chosen[feasible[chosen]]
    return moved[chosen], values[chosen]


def _climbed(
    function: UnitAcquisition, region: MixedRegion, points: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """End points of ascents at the levels of each point, and their values, best first."""
    if region.free and steps:
        return ascended(function, points, steps)
    values = evaluated(function, points)
    order = values.argsort(descending=True, stable=True)
    return points[order], values[order]


def _finished(
    function: UnitAcquisition, region: MixedRegion, points: Tensor, values: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """The points, of which the best ascend again from where they ended, until that gains nothing."""
    for _ in range(ALTERNATIONS if region.free else 0):
        if function.budget.out():
            break
        ends, reached = _climbed(function, region, points[:LAST], steps)
        gained = bool(reached[0] > values[0] + GAIN)
        points, values = torch.cat([ends, points]), torch.cat([reached, values])
        order = values.argsort(descending=True, stable=True)
        order = order[_apart(region, points[order])]
        points, values = points[order], values[order]
        if not gained:
            break
    return points, values


def _exchanged(
    function: UnitAcquisition, region: MixedRegion, points: Tensor, values: Tensor, changes: int
) -> tuple[Tensor, Tensor]:
    """Points after at most `changes` changes of one level each, the best one at a time, and their values."""
    points, values = points.clone(), values.clone()
    open_ = torch.arange(len(points), device=points.device)
    for _ in range(changes):
        if function.budget.out():
            break
        moved, origins = region.neighbours(points[open_], RELAXED)
        origins = open_[origins]
        others = evaluated(function, moved)
        best = values.scatter_reduce(0, origins, others, "amax")
        gaining = (others >= best[origins]) & (others > values[origins] + GAIN)
        numbers = torch.arange(len(moved), device=points.device).where(gaining, len(moved))
        # Of equals the first.
        first = torch.full_like(values, len(moved), dtype=torch.long)
        first = first.scatter_reduce(0, origins, numbers, "amin")
        open_ = (first < len(moved)).nonzero()[:, 0]
        if not len(open_):
            break
        points[open_], values[open_] = moved[first[open_]], others[first[open_]]
    return points, values


def _first_of_levels(region: MixedRegion, points: Tensor) -> Tensor:
    """Which points have no earlier one at the same levels, (n,) bool."""
    return ~_at_same(region, points).tril(-1).any(-1)


def _apart(region: MixedRegion, points: Tensor) -> Tensor:
    """Which points have no earlier one nearby at the same levels, (n,) bool."""
    free = points[:, region.free]
    return ~(_at_same(region, points) & (torch.cdist(free, free) <= SAME)).tril(-1).any(-1)


def _at_same(region: MixedRegion, points: Tensor) -> Tensor:
    """Which pairs of points (n, d) have the same levels, (n, n) bool."""
    at = points[:, region.places]
    return (at.unsqueeze(1) == at).all(-1)
