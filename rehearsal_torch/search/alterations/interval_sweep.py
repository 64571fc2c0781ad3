"""Interval sweeps: exact maximisation of the number of desired scenarios along a line.

With one variable free, scenario i is desired on an interval [l_i, r_i]: the intersection of the half-lines
g z <= h of its rows with the box. The z that lies in most intervals is found exactly by walking over the 2 n
sorted ends, counting up at each beginning and down at each end, in O(n log n). Between the two ends where the
count is largest every z is equally good; the midpoint is taken.

Several variables are swept along lines z + t v within the box: the axes, then random directions, which follow
ridges that run across the axes. A line sweep is exact, the whole is a local search from several starts;
`mixed_integer` is exact if it has the time. All cases, starts and scenarios share one tensor.

A `Cover` finds the z that lie in at least m of n intervals, a union of closed intervals. Walking over the
ends in order, beginnings before endings where they coincide, the count before the i-th left end is i - #{r <
l_i}, and before the j-th right end #{l <= r_j} - j: a piece begins at the left ends that raise the count from
m - 1 to m and ends at the right ends that lower it from m to m - 1. Both come out in order and in equal
number, from two sorts and two merges, in O(n log n).

Source: Qin et al. (2023), Sec. 4.2 and their released code (union of intervals for one altered variable), and
App. B.1, Alg. 3, which walks one by one.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios
from rehearsal_torch.search.cost_kinks import chord
from rehearsal_torch.search.search import UNLIMITED, Budget
from rehearsal_torch.seeding import generator


@dataclass(frozen=True)
class Cover:
    """A set of intervals, as their sorted ends."""

    begins: np.ndarray  # (n,), ascending
    ends: np.ndarray  # (n,), ascending; ends[i] need not belong to the interval that begins at begins[i]

    @classmethod
    def of(cls, left: Tensor, right: Tensor) -> "Cover":
        """The intervals [left, right], (n,) each; one with left > right is empty and left out."""
        # On the CPU: for some ten thousand numbers NumPy's sort is several times faster than torch's.
        begins, ends = left.detach().cpu().numpy(), right.detach().cpu().numpy()
        valid = begins <= ends
        return cls(np.sort(begins[valid]), np.sort(ends[valid]))

    def before(self) -> np.ndarray:
        """How many intervals cover the point just before each beginning, (n,), equal ones in turn."""
        return np.arange(len(self.begins)) - np.searchsorted(self.ends, self.begins, side="left")

    def at_least(self, count: int) -> Tensor:
        """The points in at least max(count, 1) intervals: disjoint closed intervals, ascending, (p, 2)."""
        required = max(count, 1)
        if len(self.begins) < required:
            return torch.empty(0, 2, dtype=torch.float64)
        opened = self.before() == required - 1
        closed = np.searchsorted(self.begins, self.ends, side="right") - np.arange(len(self.ends)) == required
        return torch.from_numpy(np.stack([self.begins[opened], self.ends[closed]], -1))

    def deepest(self) -> tuple[float, int]:
        """The midpoint of the first piece that lies in most intervals, and their number; nan, 0 if none."""
        if not len(self.begins):
            return float("nan"), 0
        before = self.before()
        begin = int(before.argmax())
        last = self.ends[np.searchsorted(self.ends, self.begins[begin], side="left")]
        return float(self.begins[begin] + last) / 2, int(before[begin]) + 1


def meet(one: Tensor, other: Tensor) -> Tensor:
    """The intersection of two unions of disjoint intervals, (p, 2), (q, 2) -> (s, 2)."""
    lower = torch.maximum(one[:, None, 0], other[None, :, 0])
    upper = torch.minimum(one[:, None, 1], other[None, :, 1])
    intersections = torch.stack([lower, upper], -1).reshape(-1, 2)
    valid = intersections[intersections[:, 0] <= intersections[:, 1]]
    return valid[valid[:, 0].argsort()]


def spread(pieces: Tensor, count: int) -> Tensor:
    """`count` points of intervals, (p, 2): ends, of the longest first, then a low-discrepancy sequence."""
    if not len(pieces):
        return pieces.new_empty(0)
    length = pieces[:, 1] - pieces[:, 0]
    longest = length.argsort(descending=True, stable=True)[: max(count // 2, 1)]
    ends = pieces[longest].reshape(-1)[:count]
    rest = count - len(ends)
    if not rest:
        return ends
    total = length.cumsum(0)
    unit = torch.quasirandom.SobolEngine(1).fast_forward(1).draw(rest, dtype=torch.float64)[:, 0]
    distance = unit.to(pieces) * total[-1]
    piece = torch.searchsorted(total, distance).clamp_max(len(pieces) - 1)
    inside = torch.minimum(pieces[piece, 1] - total[piece] + distance, pieces[piece, 1])
    return torch.cat([ends, torch.maximum(inside, pieces[piece, 0])])


POINTS = 33


def swept(
    objective: CountObjective, starts: int, rounds: int, screening_draws: int, budget: Budget = UNLIMITED
) -> Tensor:
    """The best actions of one set, (B, k); exact for k = 1. The budget ends each sweep after a line."""
    origin = objective.origin
    box = (objective.lower - origin, objective.upper - origin)
    if len(objective.names) == 1:
        actions, _ = line_sweeps(objective.search_scenarios, *box, objective.starts(1) - origin, 1)
        return objective.project(origin + actions[0])
    subset = objective.search_scenarios.first(screening_draws)
    best = best_of(*line_sweeps(subset, *box, objective.starts(starts) - origin, rounds, budget))
    actions, _ = line_sweeps(objective.search_scenarios, *box, best.unsqueeze(0), rounds, budget)
    return objective.project(origin + actions[0])


def best_of(actions: Tensor, counts: Tensor) -> Tensor:
    """The actions with the largest counts, (R, B, k), (R, B) -> (B, k)."""
    return actions[counts.argmax(0), torch.arange(actions.shape[1], device=actions.device)]


def line_sweeps(
    scenarios: Scenarios,
    lower: Tensor,
    upper: Tensor,
    starts: Tensor,
    rounds: int,
    budget: Budget = UNLIMITED,
) -> tuple[Tensor, Tensor]:
    """Sweeps lines through starts (R, B, k) in the box (B, k): in every round the k axes, then 2 (k - 1)
    normal directions in units of each case's box. Returns actions (R, B, k) and their numbers of desired
    scenarios, (R, B). The budget ends the sweeps after a line; a case that no start improves is left alone.
    """
    actions, width = starts.clone(), starts.shape[-1]
    counts = scenarios.desired(actions).sum(-2)
    axes, stream = torch.eye(width, dtype=starts.dtype), generator(0)
    widths = (upper - lower).cpu()
    # One set of lines for cases whose boxes have the same widths.
    widths = widths[:1] if bool((widths == widths[0]).all()) else widths
    improving = torch.ones_like(counts[0], dtype=torch.bool)
    for sweep in range(1 if width == 1 else rounds):
        before = counts.clone()
        rays = torch.randn(2 * (width - 1), 1, width, dtype=starts.dtype, generator=stream) * widths
        lines = torch.cat([axes.unsqueeze(1).expand(-1, len(widths), -1), rays]).to(starts)
        # Where all boxes are points there is no line across.
        for number, direction in enumerate(lines[(lines != 0).flatten(1).any(-1)]):
            if (sweep or number) and budget.out():
                return actions, counts
            first, last = chord(actions, direction, lower, upper)
            gains = _project_gains(scenarios.gains, direction)
            slack = scenarios.slack - torch.einsum("slk,rbk->rsbl", scenarios.gains, actions)
            step, count = most_covered(*intervals(gains, slack, first, last), first, last)
            uncovered = count == 0
            if uncovered.any():
                step = torch.where(uncovered, _min_violation(gains, slack, first, last), step)
            better = improving & ((count > counts) | (uncovered & (counts == 0)))
            moved = (actions + step.unsqueeze(-1) * direction).clamp(lower, upper)
            actions = torch.where(better.unsqueeze(-1), moved, actions)
            counts = torch.where(better, count, counts)
        improving = improving & (counts > before).any(0)
        if not bool(improving.any()):
            break
    return actions, counts


def _project_gains(gains: Tensor, direction: Tensor) -> Tensor:
    """G d of scenarios (n, l, k), (n, l) for the direction (1, k) of all cases, and (n, B, l) for (B, k)."""
    return gains @ direction[0] if len(direction) == 1 else torch.einsum("slk,bk->sbl", gains, direction)


def intervals(gains: Tensor, slack: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Where scenarios are desired: G (n, l) or (n, B, l), h (..., n, B, l), box (..., B) -> (..., n, B)."""
    coefficient = _by_case(gains)
    constant = coefficient.abs() <= 1e-12 * coefficient.abs().amax((0, 2), keepdim=True)
    bound = slack / torch.where(constant, torch.ones_like(coefficient), coefficient)
    right = bound.where((coefficient > 0) & ~constant, torch.inf).amin(-1).clamp_max(upper.unsqueeze(-2))
    left = bound.where((coefficient < 0) & ~constant, -torch.inf).amax(-1).clamp_min(lower.unsqueeze(-2))
    infeasible = (constant & (slack < 0)).any(-1)
    return left.where(~infeasible, torch.inf), right.where(~infeasible, -torch.inf)


def _by_case(gains: Tensor) -> Tensor:
    """Gains (n, l) of all cases as (n, 1, l), and those of each case, (n, B, l), as they are."""
    return gains.unsqueeze(-2) if gains.ndim == 2 else gains


def most_covered(left: Tensor, right: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """The midpoint of the piece in most of n intervals, (..., n, B), else of the box, and their number."""
    valid = left <= right
    ends = torch.cat([torch.where(valid, left, torch.inf), torch.where(valid, right, torch.inf)], -2)
    steps = torch.cat([valid.long(), -valid.long()], -2)
    # Stable: where one interval begins at the end of another, both contain the point; beginnings come first.
    ends, order = torch.sort(ends, dim=-2, stable=True)
    depth = steps.gather(-2, order).cumsum(-2)
    count, deepest = depth.max(-2)
    first = ends.gather(-2, deepest.unsqueeze(-2)).squeeze(-2)
    following = (deepest + 1).clamp_max(ends.shape[-2] - 1)
    last = ends.gather(-2, following.unsqueeze(-2)).squeeze(-2)
    middle = torch.where(count > 0, (first + last) / 2, (lower + upper) / 2)
    return middle.clamp(lower, upper), count


def _min_violation(gains: Tensor, slack: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """For lines on which no scenario can be desired: the grid point with the smallest mean violation."""
    shares = torch.linspace(0, 1, POINTS, dtype=lower.dtype, device=lower.device)
    points = [lower + share * (upper - lower) for share in shares]
    excess = [_by_case(gains) * point.unsqueeze(-2).unsqueeze(-1) - slack for point in points]
    violation = torch.stack([excess_at.clamp_min(0).amax(-1).mean(-2) for excess_at in excess])
    return torch.stack(points).gather(0, violation.argmin(0, keepdim=True)).squeeze(0)
