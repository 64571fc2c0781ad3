"""Projected Newton method on boxes, for many cases at once.

To maximise a concave function on a box [l, u], coordinates at a bound whose gradient points outwards are
*active*. The curvature of the others gives a Newton step p; the point moves along its projection,

    z(a) = clip(z + a p),    a = 1, beta, beta^2, ...,

until the Armijo condition holds: the gain is at least sigma {a g_F' p_F + g_A' (z_A(a) - z_A)}, F the free
and A the active coordinates. All cases share each step; converged cases leave the batch. The function is
concave (`gaussian_success`), so that the result is the global optimum.

With a single outcome the optimum has a closed form. Let y = m + e'z + noise with the interval [y_l, y_u]:
log P depends only on the mean m + e'z, rises up to the midpoint of the interval and falls after it. The best
mean is this midpoint, clipped to the range of means in the box, and every action with that mean is optimal.
The one taken lies on the line from the corner with the smallest mean to the corner with the largest, so that
every variable moves by the same share of its range. With an open side the mean goes to the bound.

Source: Bertsekas (1982); Qin et al. (2025b), Alg. 1 (whose Armijo sum runs over the active set in both terms,
a printing error) and Alg. 2 (the closed form, filling one coordinate after the other).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.region_probability import RectangleProbability
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, chosen, in_time

# beta and sigma.
STEP_REDUCTION, SUFFICIENT_DECREASE = 0.5, 1e-3


def centred(base: Tensor, effect: Tensor, lower: Tensor, upper: Tensor, target: Tensor) -> Tensor:
    """Actions (B, k) in a box whose mean m + e' z, (B,) and (k,), is closest to a target, maybe infinite."""
    lowest, highest = lower.where(effect > 0, upper), upper.where(effect > 0, lower)
    low, high = base + lowest @ effect, base + highest @ effect
    span = high - low
    share = ((target - low) / span.where(span > 0, 1.0)).where(span > 0, 0.5).clamp(0.0, 1.0)
    return lowest + share.unsqueeze(-1) * (highest - lowest)


@dataclass(eq=False)
class ProjectionNewton(BatchSearch[Candidates[GaussianSuccess]]):
    """Maximises the probability of success over every candidate set.

    Args:
        steps: Maximum number of Newton steps.
        tolerance: Stops once no coordinate moves by more than this share of its range.
        predictive: Compare sets by predictive probabilities; False for plug-in values, as in the paper.
        declines: See `Search`; False for the behaviour in the paper.
        budget_s: See `Search`; a step is a Newton step.
    """

    steps: int = 100
    tolerance: float = 1e-7
    batch_size: int = 1000
    predictive: bool = True
    declines: bool = True
    budget_s: float | None = None
    pools = True
    draws = False

    def __post_init__(self) -> None:
        self.check_sizes("steps", "tolerance", expected="steps >= 1 and tolerance > 0")

    @torch.no_grad()
    def batch_search(self, objective: Candidates[GaussianSuccess]) -> list[Decision]:
        """Returns the best set and action for each case."""
        budget = Budget(self.budget_s)
        sets = objective.sets
        actions = [self.best(candidate, budget) for candidate in in_time(sets, budget)]
        pairs = zip(sets, actions, strict=False)
        values = torch.stack([self.compared_value(*pair) for pair in pairs])
        return chosen(objective, actions, values, "projection_newton", budget, declines=self.declines)

    def compared_value(self, objective: GaussianSuccess, actions: Tensor) -> Tensor:
        """The values by which the best actions (B, k) of the sets are compared, (B,)."""
        return objective.compared_value(actions) if self.predictive else objective(actions)

    @torch.no_grad()
    def best(self, objective: GaussianSuccess, budget: Budget = UNLIMITED) -> Tensor:
        """The best actions of one set, (B, k)."""
        region = objective.region_probability
        if isinstance(region, RectangleProbability) and len(region.directions) == 1:
            base, effect = objective.base @ region.directions[0], region.directions[0] @ objective.effect
            return centred(base, effect, objective.lower, objective.upper, region.middle[0])
        return self.ascend(objective, objective.starts(1)[0], budget)

    @torch.no_grad()
    def ascend(self, objective: GaussianSuccess, start: Tensor, budget: Budget = UNLIMITED) -> Tensor:
        """Newton steps from (B, k) to the optimum of one set, (B, k), within the time budget."""
        solution, rows = start.clone(), torch.arange(len(start), device=start.device)
        width = objective.upper - objective.lower
        unit = torch.where(width > 0, width, torch.ones_like(width))
        z, lower, upper = start, objective.lower, objective.upper
        for step_count in range(self.steps):
            if step_count and budget.out():
                break
            expansion = objective.expansion(z, rows)
            # In units of each variable's range, so that one tolerance and one ridge suit all.
            gradient = expansion.gradient * unit
            curvature = -expansion.curvature * unit.unsqueeze(-1) * unit.unsqueeze(-2)
            projected = (z + gradient * unit).clamp(lower, upper) - z
            margin = (projected / unit).abs().amax(-1, keepdim=True).clamp_max(1e-3) * unit
            active = ((z <= lower + margin) & (gradient < 0)) | ((z >= upper - margin) & (gradient > 0))
            step = _newton_step(gradient, curvature, active)
            value = expansion.value
            moved = self._armijo_step(objective, rows, z, value, gradient, step, active, unit, lower, upper)
            converged = ((moved - z) / unit).abs().amax(-1) < self.tolerance
            solution[rows] = moved
            if converged.all():
                break
            moving = ~converged
            z = moved[moving]
            lower = lower[moving]
            upper = upper[moving]
            unit = unit[moving]
            rows = rows[moving]
        return solution

    def _armijo_step(
        self,
        objective: GaussianSuccess,
        cases: Tensor,
        z: Tensor,
        value: Tensor,
        gradient: Tensor,
        step: Tensor,
        active: Tensor,
        unit: Tensor,
        lower: Tensor,
        upper: Tensor,
    ) -> Tensor:
        moved, rows, size = z.clone(), torch.arange(len(z), device=z.device), 1.0
        free_gain = (gradient * step).where(~active, 0.0).sum(-1)
        for _ in range(40):
            trial = (z[rows] + size * step[rows] * unit[rows]).clamp(lower[rows], upper[rows])
            at_bound = gradient[rows] * (trial - z[rows]) / unit[rows]
            at_bound = at_bound.where(active[rows], 0.0).sum(-1)
            gain = objective.values(trial, cases[rows]) - value[rows]
            # Rounding of log P may hide a gain: a step that is level up to rounding is accepted.
            rounding = 1e-14 * (1 + value[rows].abs())
            sufficient = gain >= SUFFICIENT_DECREASE * (size * free_gain[rows] + at_bound) - rounding
            moved[rows[sufficient]] = trial[sufficient]
            rows = rows[~sufficient]
            if not len(rows):
                break
            size *= STEP_REDUCTION
        return moved


def _newton_step(gradient: Tensor, curvature: Tensor, active: Tensor) -> Tensor:
    """The Newton step of the free coordinates, (n, k), (n, k, k) -> (n, k); the gradient where that fails."""
    diagonal = curvature.diagonal(dim1=-2, dim2=-1)
    free = ~active
    pairs = free.unsqueeze(-1) & free.unsqueeze(-2)
    # More actions than outcomes leave directions without curvature; a ridge keeps the step in the others.
    ridge = 1e-9 * diagonal.amax(-1, keepdim=True) + 1e-14
    shift = torch.where(free, ridge.expand_as(diagonal), diagonal + ridge)
    root, failed = torch.linalg.cholesky_ex(curvature.where(pairs, 0.0) + torch.diag_embed(shift))
    step = torch.cholesky_solve(gradient.unsqueeze(-1), root).squeeze(-1)
    return torch.where((failed > 0).unsqueeze(-1), gradient, step)
