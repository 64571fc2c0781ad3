"""Where costs count: what a search has found, settled on the kinks of the net value.

A net value (`objectives.net_value`) is a smooth probability minus a sum of costs, one per coordinate, each
with a kink, and perhaps a jump, at the value o_i that keeping the action costs nothing at. Whatever maximises
it, "keep it as it is" is found to the last bit by a climb along the axes of the box: from every start, one
coordinate after the other is moved to the best of a grid of its whole range, of o_i itself and of finer grids
around the best; after each sweep, the point also moves along the line of what the sweep changed, on which the
places where a coordinate equals o_i are tried exactly. Where the rest is smooth and concave and nothing
jumps, the end point is a maximum, since what is not smooth is separable. Several coordinates are first moved
on coarse grids; later sweeps look around where the point is.

The starts are what the search has found in a candidate set, keeping everything as it is, half-way between the
two, and the best of the objective's own starts, which serves searches that look at the structure of an
objective and not at its net value. A start of a case that a sweep no longer improves stays where it is; after
the first sweep the best starts of each case go on. The result for a case does not depend on the cases beside
it.

Source: Tseng (2001), Thm. 4.1 (coordinate-wise maxima of smooth plus separable functions); Hooke and Jeeves
(1961) for the step along a sweep's change.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.objectives.net_value import Charge
from rehearsal_torch.objectives.objective import AlterationObjective

# Points of the grid of a line, and of finer ones around the best, each a third as wide.
GRID, FINE, ZOOMS, COARSE = 25, 7, 6, 2
SWEEPS, KEPT = 8, 2
# Improvements of less than this, in units of the function, end a climb.
LEVEL = 1e-6
# A coordinate this close to the place of its kink, as a share of its range, is at it.
SNAP = 1e-10
AT_ONCE = 64

Value = Callable[[Tensor], Tensor]


def evaluated(value: Value, actions: Tensor) -> Tensor:
    """Values of many actions, in parts, (n, B, k) -> (n, B); minus infinity where one is undefined."""
    return torch.cat([ranked(value(part)) for part in actions.split(AT_ONCE)])


@torch.no_grad()
def climb(
    value: Value,
    starts: Tensor,
    lower: Tensor,
    upper: Tensor,
    origin: Tensor,
    out: Callable[[], bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The end points from some starts. Returns points (n, B, k) and their values (n, B), n <= S.

    Args:
        value: What is to be largest, (n, B, k) -> (n, B).
        starts: (S, B, k), in the box.
        lower: The box, (B, k).
        upper: (B, k).
        origin: o, (B, k); NaN for a coordinate without a kink.
    """
    box = _Box(lower, upper, origin)
    points, values = starts, evaluated(value, starts)
    active = torch.ones_like(values, dtype=torch.bool)
    free = [place for place in range(starts.shape[-1]) if bool((upper > lower)[:, place].any())]
    for sweep in range(SWEEPS if len(free) > 1 else len(free)):
        before, reached = points, values
        for direction in box.directions(free, points):
            if out is not None and out():
                return points, values
            zooms = COARSE if len(free) > 1 and not sweep else ZOOMS
            moved, found = _along(value, points, values, direction, box, zooms, grid=not sweep)
            points = torch.where(active.unsqueeze(-1), moved, points)
            values = torch.where(active, found, values)
        if len(free) > 1:
            moved, found = _along(value, points, values, points - before, box, COARSE, grid=True)
            points = torch.where(active.unsqueeze(-1), moved, points)
            values = torch.where(active, found, values)
        active = active & (values > reached + LEVEL)
        if not sweep and len(points) > KEPT:
            best = values.topk(KEPT, dim=0).indices
            points = points.gather(0, best.unsqueeze(-1).expand(*best.shape, points.shape[-1]))
            values, active = values.gather(0, best), active.gather(0, best)
        if not bool(active.any()):
            break
    return points, values


class _Box:
    """A box with the places of the kinks."""

    def __init__(self, lower: Tensor, upper: Tensor, origin: Tensor) -> None:
        self.lower, self.upper = lower, upper
        inside = (origin >= lower) & (origin <= upper)
        self.kink = torch.where(inside, origin, torch.full_like(origin, torch.nan))
        self.near = SNAP * (upper - lower)

    def directions(self, free: list[int], points: Tensor) -> Iterator[Tensor]:
        """The axes, (S, B, k) each."""
        for place in free:
            axis = torch.zeros_like(points)
            axis[..., place] = 1.0
            yield axis

    def inside(self, points: Tensor) -> Tensor:
        """The nearest points of the box, on a kink where they are close to one."""
        within = torch.minimum(torch.maximum(points, self.lower), self.upper)
        return torch.where((within - self.kink).abs() <= self.near, self.kink, within)

    def chord(self, points: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The ends of the t with points + t direction in the box, (S, B) each, and the t of the kinks,
        (k, S, B), 0 where there is none.
        """
        moves = direction != 0
        by = torch.where(moves, direction, torch.ones_like(direction))
        one, other = (self.lower - points) / by, (self.upper - points) / by
        first = torch.where(moves, torch.minimum(one, other), -torch.inf).amax(-1).clamp_max(0.0)
        last = torch.where(moves, torch.maximum(one, other), torch.inf).amin(-1).clamp_min(0.0)
        # A direction of zeros has no line.
        still = ~moves.any(-1)
        first, last = (torch.where(still, torch.zeros_like(each), each) for each in (first, last))
        at = torch.where(moves, (self.kink - points) / by, torch.zeros_like(by)).nan_to_num(0.0)
        at = torch.minimum(torch.maximum(at, first.unsqueeze(-1)), last.unsqueeze(-1))
        return first, last, at.movedim(-1, 0)


def _along(
    value: Value, points: Tensor, values: Tensor, direction: Tensor, box: _Box, zooms: int, *, grid: bool
) -> tuple[Tensor, Tensor]:
    """The best points of the lines through some points, (S, B, k) and (S, B); a point stays where its line
    has no better one.
    """
    first, last, kinks = box.chord(points, direction)
    shares = torch.linspace(0, 1, GRID, dtype=points.dtype, device=points.device)
    around = torch.linspace(-1, 1, FINE, dtype=points.dtype, device=points.device)[:, None, None]
    best, reached, answer = torch.zeros_like(first), values, points
    length = (last - first) / (GRID - 1)
    steps = torch.cat([first + shares[:, None, None] * (last - first), kinks]) if grid else kinks
    for _ in range(zooms + 1):
        at = box.inside(points + steps.unsqueeze(-1) * direction)
        found = evaluated(value, at.flatten(0, 1)).unflatten(0, at.shape[:2])
        highest, which = found.max(0)
        better = highest > reached
        wide = which[None, ..., None].expand(1, *which.shape, at.shape[-1])
        answer = torch.where(better.unsqueeze(-1), at.gather(0, wide).squeeze(0), answer)
        best = torch.where(better, steps.gather(0, which.unsqueeze(0)).squeeze(0), best)
        reached = torch.where(better, highest, reached)
        steps = torch.minimum(torch.maximum(best + length * around, first), last)
        length = length / ((FINE - 1) / 2)
    return answer, reached


STARTS, LINE = 24, 17


@torch.no_grad()
def settled(
    one: AlterationObjective, charge: Charge, found: Tensor, out: Callable[[], bool]
) -> tuple[Tensor, Tensor]:
    """The actions of one set where costs count, from those that a search has found, (B, k): the best that the
    objective accepts, or the best if it accepts none. Returns them, and their net values (B,) in the unit of
    the costs.
    """
    origin = charge.costs.origin.to(one.lower)
    starts = one.starts(STARTS).to(one.lower)
    given = one.project(found.to(one.lower))
    keep = one.project(torch.where(origin.isnan(), given, origin))
    promising = starts[evaluated(one.sought, starts).argmax(0), range(starts.shape[1])]
    begin = torch.stack([keep, given, (keep + given) / 2, promising])
    ends, values = climb(one.sought, begin, one.lower, one.upper, origin, out)
    best = _accepted(one, one.sought, torch.cat([ends, torch.stack([given, keep])]), values, keep)
    worth = charge.worth.to(best)
    return best, worth * (one.compared_probability(best) - charge(best))


def _accepted(one: AlterationObjective, value: Value, ends: Tensor, values: Tensor, keep: Tensor) -> Tensor:
    """The best acceptable of some points (n, B, k), of which the first have known values; where none is
    accepted, the best acceptable on the way from them to what is kept; else the best.
    """
    known = torch.cat([values, evaluated(value, ends[len(values) :])])
    accepted = one.acceptable(ends).to(known.device)
    if not bool(accepted.any(0).all()):
        top = ends[known.argmax(0), range(ends.shape[1])]
        shares = torch.linspace(0, 1, LINE, dtype=ends.dtype, device=ends.device)[:, None, None]
        way = top + shares * (keep - top)
        # Only where no end point is accepted: cases beside others are decided as if alone.
        useful = one.acceptable(way).to(known.device) & ~accepted.any(0)
        more = evaluated(value, way).masked_fill(~useful, -math.inf)
        ends, known, accepted = (
            torch.cat([ends, way]),
            torch.cat([known, more]),
            torch.cat([accepted, useful]),
        )
    allowed = torch.where(accepted.any(0), accepted, torch.ones_like(accepted))
    best = known.masked_fill(~allowed, -math.inf).argmax(0)
    return ends[best, torch.arange(ends.shape[1], device=ends.device)]
