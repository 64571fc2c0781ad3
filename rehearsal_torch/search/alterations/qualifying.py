"""Pools of alterations that satisfy the chance constraint.

In both samples of scenarios, the one used for the search and the one used for validation, at least a share
tau must be desired. For one variable the qualifying points form unions of closed intervals, found exactly on
each sample and intersected (Alg. 1 and 3); for several variables candidates come from programs, sweeps and
lines (`joint_candidates`). In addition, the most probable point of each set shows how far the set stays below
tau.

Source: Qin et al. (2023), Sec. 4.2, Alg. 1 and 3, App. B.2.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.interval_sweep import Cover, intervals, meet, spread, swept
from rehearsal_torch.search.alterations.joint_candidates import AlterationBudget, joint_candidates
from rehearsal_torch.search.budget import UNLIMITED, Budget


@dataclass(frozen=True)
class Programs:
    """Settings of the mixed-integer programs for candidates of several variables.

    Attributes:
        count: Number of programs.
        scenarios: Number of scenarios in each.
        nodes: Maximum number of nodes of a branch-and-bound tree.
    """

    count: int
    scenarios: int
    nodes: int


@dataclass(frozen=True)
class Points:
    """Points of one candidate set.

    Attributes:
        points: (m, k), the most probable first; m may be 0.
        share: The share of desired validation scenarios at the most probable affordable point, whether it
            qualifies or not; -1 if no point is affordable.
    """

    points: Tensor
    share: float


@dataclass(frozen=True)
class Qualifying:
    """Finds qualifying alterations.

    Attributes:
        tau: The required share of desired scenarios.
        pool: Maximum number of points returned.
        budget: Upper bound on the cost of an alteration; None for no bound.
        programs: Settings of the search for candidates of several variables.
    """

    tau: float
    pool: int
    budget: AlterationBudget | None
    programs: Programs

    def points(self, one: SuccessProbability, index: int, budget: Budget = UNLIMITED) -> Points:
        """The qualifying points of one set in one case, as far as the time budget allows."""
        if len(one.names) == 1:
            covers = self._covers(one, index)
            pieces = meet(*(cover.at_least(self._required_count(count)) for cover, count in covers)).to(
                one.lower
            )
            return self._first(
                one,
                index,
                one.origin[index] + spread(pieces, self.pool).unsqueeze(-1),
                self._likeliest(one, index, covers[0][0]),
            )
        how = self.programs
        found = joint_candidates(one, index, self.tau, how.count, how.scenarios, how.nodes, budget=budget)
        return self._first(one, index, self._affordable(one, found), self.best(one, index, budget).points)

    def pieces(self, one: SuccessProbability, index: int) -> Tensor:
        """The qualifying values of a set of one variable in one case: disjoint closed intervals, (p, 2)."""
        return one.origin[index] + meet(
            *(cover.at_least(self._required_count(count)) for cover, count in self._covers(one, index))
        ).to(one.lower)

    def best(self, one: SuccessProbability, index: int, budget: Budget = UNLIMITED) -> Points:
        """The most probable affordable point that sweeps find in one set for one case, (1, k); (0, k) if
        there is none.
        """
        if len(one.names) == 1:
            found = self._likeliest(one, index, self._covers(one, index)[0][0])
        else:
            whole = [self.anywhere(one, index), self._affordable(one, swept(one, 4, 5, 500, budget)[[index]])]
            found = torch.cat(whole)
            found = (
                found[one.share_of(index, found, validating=False).argsort(descending=True)[:1]]
                if len(found)
                else found
            )
        return Points(found, float(one.share_of(index, found).max()) if len(found) else -1.0)

    def anywhere(self, one: SuccessProbability, index: int) -> Tensor:
        """Affordable points spread over the box, (m, k)."""
        if len(one.names) > 1:
            return self._affordable(one, one.starts(self.pool)[:, index])
        lower, upper = self._bounds(one, index)
        if not bool(lower <= upper):
            return one.lower.new_empty(0, 1)
        return one.origin[index] + spread(torch.stack([lower, upper], -1), self.pool).unsqueeze(-1)

    def _covers(self, one: SuccessProbability, index: int) -> list[tuple[Cover, int]]:
        """The intervals of both samples, relative to the origin, and the numbers of scenarios."""
        lower, upper = self._bounds(one, index)
        found = []
        for part in (one.search_scenarios, one.validation_scenarios):
            left, right = intervals(part.gains[..., 0], part.slack[:, [index]], lower, upper)
            found.append((Cover.of(left[:, 0], right[:, 0]), len(left)))
        return found

    def _required_count(self, count: int) -> int:
        return math.ceil(self.tau * count - 1e-9)

    def _likeliest(self, one: SuccessProbability, index: int, cover: Cover) -> Tensor:
        """The affordable value of one variable under which most scenarios are desired, (1, 1), or any where
        none is; (0, 1) if none is affordable.
        """
        point, count = cover.deepest()
        if not count:
            return self.anywhere(one, index)[:1]
        return one.origin[index] + one.lower.new_tensor([[point]])

    def _bounds(self, one: SuccessProbability, index: int) -> tuple[Tensor, Tensor]:
        """Bounds of one variable, relative to the origin, (1,) each; lower > upper if none is affordable."""
        lower, upper, origin = one.lower[index], one.upper[index], one.origin[index]
        if self.budget is not None:
            first, last = self.budget.reach(one.names[0])
            lower, upper = lower.clamp_min(first), upper.clamp_max(last)
        return lower - origin, upper - origin

    def _affordable(self, one: SuccessProbability, points: Tensor) -> Tensor:
        return points if self.budget is None else points[self.budget.affordable(one.names, points)]

    def _first(self, one: SuccessProbability, index: int, points: Tensor, best: Tensor) -> Points:
        """The points, led by the most probable one if it qualifies, and the share that this one reaches."""
        if not len(best):
            return Points(points, float(one.share_of(index, points).max()) if len(points) else -1.0)
        reached = one.share_of(index, best)
        fits = bool(reached[0] >= self.tau) and bool(
            one.share_of(index, best, validating=False)[0] >= self.tau
        )
        kept = (
            apart(points, best, self.pool - 1, one.upper[index] - one.lower[index])
            if len(one.names) > 1
            else points[: self.pool - 1]
        )
        return Points(torch.cat([best, kept]) if fits else points[: self.pool], float(reached[0]))


def apart(points: Tensor, begin: Tensor, count: int, width: Tensor) -> Tensor:
    """Selects at most `count` points by farthest-point sampling, in units of the box.

    Args:
        points: (m, k).
        begin: Points that count as already selected, (b, k).
        count: Maximum number of points.
        width: Widths of the box, (k,).
    """
    unit = torch.where(width > 0, width, torch.ones_like(width))
    near = torch.cdist(points / unit, begin / unit).amin(-1) if len(points) else points.new_empty(0)
    chosen: list[int] = []
    for _ in range(min(count, len(points))):
        chosen.append(int(near.argmax()))
        near = torch.minimum(near, ((points - points[chosen[-1]]) / unit).norm(dim=-1))
        near[chosen[-1]] = -1.0
    return points[chosen]
