"""Sweeps over intervals.

With one variable free, scenario i is desired on an interval [l_i, r_i]: the meeting of the half-lines g z <=
h of its rows with the box. The z that lies in most intervals is found exactly by walking over the 2 n sorted
ends, counting up at each beginning and down at each end, in O(n log n). Between the two ends where the count
is largest any z is as good; the middle is taken.

Several variables are swept line by line, z + t v for t in the interval that the box leaves: along each axis,
then along directions drawn at random, which follow ridges that run across the axes. A line sweep is exact,
the whole is a local search from several starts: `mixed_integer` is exact where it has the time.

All situations, starts and scenarios share one tensor.

Source: Qin et al. (2023), Sec. 4.2 and their released code (union of intervals for one altered variable); the
coordinate sweeps are ours.

Where enough intervals overlap.

Scenario i is desired on an interval [l_i, r_i] of the altered variable. The z that lie in at least m of n
intervals form a union of closed intervals. Walking over the ends in order, beginnings before endings where
they coincide, the count before the i-th left end is i - #{r < l_i}, and before the j-th right end #{l <= r_j}
- j: a piece begins at the left ends that raise the count from m - 1 to m and ends at the right ends that
lower it from m to m - 1. Both come out in order, as many of the one as of the other, from two sorts and two
merges: O(n log n).

Source: Qin et al. (2023), App. B.1, Alg. 3, which walks one by one.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios
from rehearsal_torch.search.budget import UNLIMITED, Budget, checked_budget
from rehearsal_torch.search.search import BatchSearch, chosen, in_time
from rehearsal_torch.seeding import generator


@dataclass(frozen=True)
class Cover:
    """Intervals, as their ends in order.

    Attributes:
        begins: (n,), ascending.
        ends: (n,), ascending; not each the partner of the beginning at its place.
    """

    begins: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, left: Tensor, right: Tensor) -> "Cover":
        """Intervals [left, right], (n,) each; one with left > right is empty and left out."""
        # On the host: for some ten thousand numbers NumPy's sort is several times as fast as torch's.
        begins, ends = left.detach().cpu().numpy(), right.detach().cpu().numpy()
        real = begins <= ends
        return cls(np.sort(begins[real]), np.sort(ends[real]))

    def before(self) -> np.ndarray:
        """In how many intervals the points just below each beginning lie; among equal beginnings one after
        the other, (n,).
        """
        return np.arange(len(self.begins)) - np.searchsorted(self.ends, self.begins, side="left")

    def at_least(self, count: int) -> Tensor:
        """The points that lie in at least `count` intervals; below 1 is read as 1.

        Returns:
            Disjoint closed intervals in ascending order, (p, 2); a piece may be a point.
        """
        need = max(count, 1)
        if len(self.begins) < need:
            return torch.empty(0, 2, dtype=torch.float64)
        opened = self.before() == need - 1
        closed = np.searchsorted(self.begins, self.ends, side="right") - np.arange(len(self.ends)) == need
        return torch.from_numpy(np.stack([self.begins[opened], self.ends[closed]], -1))

    def deepest(self) -> tuple[float, int]:
        """The middle of the first piece that lies in most intervals, and in how many; nan and 0 where all are
        empty.
        """
        if not len(self.begins):
            return float("nan"), 0
        before = self.before()
        place = int(before.argmax())
        last = self.ends[np.searchsorted(self.ends, self.begins[place], side="left")]
        return float(self.begins[place] + last) / 2, int(before[place]) + 1


def meet(one: Tensor, other: Tensor) -> Tensor:
    """What two unions of disjoint intervals share: (p, 2), (q, 2) -> (s, 2)."""
    both = torch.stack(
        [
            torch.maximum(one[:, None, 0], other[None, :, 0]),
            torch.minimum(one[:, None, 1], other[None, :, 1]),
        ],
        -1,
    ).reshape(-1, 2)
    kept = both[both[:, 0] <= both[:, 1]]
    return kept[kept[:, 0].argsort()]


def spread(pieces: Tensor, count: int) -> Tensor:
    """`count` points over a union of intervals, (p, 2) -> (count,): the ends first, then points all over it,
    each halving what is left.

    Where there are more ends than points, the ends of the longest pieces; of no intervals no points.
    """
    if not len(pieces):
        return pieces.new_empty(0)
    length = pieces[:, 1] - pieces[:, 0]
    kept = length.argsort(descending=True, stable=True)[: max(count // 2, 1)]
    ends = pieces[kept].reshape(-1)[:count]
    left = count - len(ends)
    if not left:
        return ends
    total = length.cumsum(0)
    at = (
        torch.quasirandom.SobolEngine(1)
        .fast_forward(1)
        .draw(left, dtype=torch.float64)
        .squeeze(-1)
        .to(pieces)
        * total[-1]
    )
    which = torch.searchsorted(total, at).clamp_max(len(pieces) - 1)
    inside = torch.minimum(pieces[which, 1] - total[which] + at, pieces[which, 1])
    return torch.cat([ends, torch.maximum(inside, pieces[which, 0])])


POINTS = 33


class IntervalSweep(BatchSearch[Candidates[CountObjective]]):
    """The alteration that most scenarios agree on.

    Args:
        starts: From how many points sets of several variables are swept.
        rounds: At most how often all lines are swept.
        screening_draws: How many scenarios are swept from all starts; the best is then swept over all.
        batch_size: How many situations at once.
        budget_s: See `Search`; a step is a sweep along one line of a candidate set.

    Raises:
        ValueError: if a number is not positive.
    """

    def __init__(
        self,
        starts: int = 8,
        rounds: int = 10,
        screening_draws: int = 500,
        batch_size: int = 32,
        budget_s: float | None = None,
    ) -> None:
        if min(starts, rounds, screening_draws, batch_size) < 1:
            raise ValueError(
                f"expected positive numbers; got starts={starts}, rounds={rounds}, "
                f"screening_draws={screening_draws}, "
                f"batch_size={batch_size}"
            )
        self.begin, self.rounds, self.screening_draws, self.batch_size = (
            starts,
            rounds,
            screening_draws,
            batch_size,
        )
        self.budget_s = checked_budget(budget_s)

    @torch.no_grad()
    def batch_search(self, objective: Candidates[CountObjective]) -> list[Decision]:
        """The best set and action for each situation."""
        budget = Budget(self.budget_s)
        sets = objective.sets
        actions = [
            swept(one, self.begin, self.rounds, self.screening_draws, budget) for one in in_time(sets, budget)
        ]
        values = torch.stack([one.share(each) for one, each in zip(sets, actions, strict=False)])
        return chosen(objective, actions, ranked(values), "interval_sweep", budget, declines=self.declines)


def swept(
    objective: CountObjective, starts: int, rounds: int, screening_draws: int, budget: Budget = UNLIMITED
) -> Tensor:
    """The best actions of one set, (B, k): exact for k = 1. A budget ends it after a line of each sweep."""
    origin = objective.origin
    box = (objective.lower - origin, objective.upper - origin)
    if len(objective.names) == 1:
        return objective.project(
            origin + line_sweeps(objective.search_scenarios, *box, objective.starts(1) - origin, 1)[0][0]
        )
    found = best_of(
        *line_sweeps(
            objective.search_scenarios.first(screening_draws),
            *box,
            objective.starts(starts) - origin,
            rounds,
            budget,
        )
    )
    swept_again = line_sweeps(objective.search_scenarios, *box, found.unsqueeze(0), rounds, budget)
    return objective.project(origin + swept_again[0][0])


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
    """Sweeps lines through starts (R, B, k) in the box (B, k): actions (R, B, k), and how many scenarios are
    desired, (R, B). A budget ends it after a line.
    """
    actions, width = starts.clone(), starts.shape[-1]
    counts = scenarios.desired(actions).sum(-2)
    axes, stream = torch.eye(width, dtype=starts.dtype), generator(0)
    reach = (upper - lower).amax(0).cpu()
    for sweep in range(1 if width == 1 else rounds):
        before = counts.clone()
        across = torch.randn(2 * (width - 1), width, dtype=starts.dtype, generator=stream) * reach
        for place, direction in enumerate(torch.cat([axes, across]).to(starts)):
            if (sweep or place) and budget.out():
                return actions, counts
            first, last = _chord(actions, direction, lower, upper)
            gains, slack = (
                scenarios.gains @ direction,
                scenarios.slack - torch.einsum("slk,rbk->rsbl", scenarios.gains, actions),
            )
            step, count = most_covered(*intervals(gains, slack, first, last), first, last)
            none = count == 0
            if none.any():
                step = torch.where(none, _min_violation(gains, slack, first, last), step)
            better = (count > counts) | (none & (counts == 0))
            moved = torch.minimum(torch.maximum(actions + step.unsqueeze(-1) * direction, lower), upper)
            actions, counts = torch.where(better.unsqueeze(-1), moved, actions), torch.maximum(count, counts)
        if bool((counts == before).all()):
            break
    return actions, counts


def _chord(actions: Tensor, direction: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """The t for which actions (R, B, k) + t direction stay in the box, (R, B) each."""
    moves = direction != 0
    one, other = ((end - actions)[..., moves] / direction[moves] for end in (lower, upper))
    return torch.minimum(one, other).amax(-1).clamp_max(0.0), torch.maximum(one, other).amin(-1).clamp_min(
        0.0
    )


def intervals(gains: Tensor, slack: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Where each scenario is desired: gains (n, l), room (..., n, B, l), box (..., B) -> ends (..., n, B);
    empty where left > right.
    """
    coefficient = gains.unsqueeze(-2)
    flat = coefficient.abs() <= 1e-12 * coefficient.abs().amax()
    bound = slack / torch.where(flat, torch.ones_like(coefficient), coefficient)
    right = torch.where((coefficient > 0) & ~flat, bound, torch.full_like(bound, torch.inf)).amin(-1)
    left = torch.where((coefficient < 0) & ~flat, bound, torch.full_like(bound, -torch.inf)).amax(-1)
    never = (flat & (slack < 0)).any(-1)
    return torch.where(never, torch.inf, torch.maximum(left, lower.unsqueeze(-2))), torch.where(
        never, -torch.inf, torch.minimum(right, upper.unsqueeze(-2))
    )


def most_covered(left: Tensor, right: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """The middle of the piece that lies in most intervals, and in how many.

    Args:
        left: Left ends, (..., n, B).
        right: Right ends; an interval with left > right is empty.
        lower: The box's lower ends, (..., B), for where all intervals are empty: then the box's middle is
            given.
        upper: Its upper ends.

    Returns:
        Points (..., B) and counts (..., B).
    """
    real = left <= right
    ends = torch.cat([torch.where(real, left, torch.inf), torch.where(real, right, torch.inf)], -2)
    steps = torch.cat([real.long(), -real.long()], -2)
    # Stable: where an interval begins as another ends, both hold the point, and beginnings stand first.
    ends, order = torch.sort(ends, dim=-2, stable=True)
    depth = steps.gather(-2, order).cumsum(-2)
    count, place = depth.max(-2)
    first = ends.gather(-2, place.unsqueeze(-2)).squeeze(-2)
    following = (place + 1).clamp_max(ends.shape[-2] - 1)
    last = ends.gather(-2, following.unsqueeze(-2)).squeeze(-2)
    middle = torch.where(count > 0, (first + last) / 2, (lower + upper) / 2)
    return torch.minimum(torch.maximum(middle, lower), upper), count


def _min_violation(gains: Tensor, slack: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Where no scenario can be desired: of some points of the box the one that comes nearest on average,
    (..., B).
    """
    shares = torch.linspace(0, 1, POINTS, dtype=lower.dtype, device=lower.device)
    points = [lower + share * (upper - lower) for share in shares]
    short = torch.stack(
        [
            (gains.unsqueeze(-2) * point.unsqueeze(-2).unsqueeze(-1) - slack).clamp_min(0).amax(-1).mean(-2)
            for point in points
        ]
    )
    return torch.stack(points).gather(0, short.argmin(0, keepdim=True)).squeeze(0)
