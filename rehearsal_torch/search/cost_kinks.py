"""Coordinate ascent of net values, which have kinks where an action is kept as it is.

A net value (`objectives.net_value`) is a smooth probability minus a sum of costs, one per coordinate, each
with a kink, and perhaps a jump, at the value o_i at which keeping the action costs nothing. A climb along the
axes of the box reaches o_i to the last bit: from every start, one coordinate after the other is moved to the
best of a grid of its range, of o_i itself and of finer grids around the best; after each sweep, the point
also moves along the line of the sweep's change, on which coordinates at o_i are tried exactly. Where the
probability is concave and no cost jumps, the end point is a maximum, since the kinks are separable.
Several coordinates are first moved on coarse grids; later sweeps look around the current point.

The starts are the result of a search in a candidate set, keeping everything as it is, half-way between the
two, and the best of the objective's own starts, for searches that do not look at net values. A start of a
case that a sweep no longer improves stays; after the first sweep the best starts of each case go on. The
result for a case does not depend on the cases beside it.

Source: Tseng (2001), Thm. 4.1 (coordinate-wise maxima of smooth plus separable functions); Hooke and Jeeves
(1961) for the step along a sweep's change.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.objectives.net_value import Charge
from rehearsal_torch.objectives.objective import AlterationObjective

# Points of the grid of a line, and of finer ones around the best, each a third as wide.
GRID, FINE, ZOOMS, COARSE = 25, 7, 6, 2
SWEEPS, KEPT = 8, 2
LEVEL = 1e-6  # Smaller improvements, in units of the function, end a climb
SNAP = 1e-10  # A coordinate this close to its kink, as a share of its range, is at it
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
    """Climbs from some starts to points (n, B, k) with values (n, B), n <= S.

    Args:
        value: The function to maximise, (n, B, k) -> (n, B).
        starts: (S, B, k), in the box.
        lower: The box, (B, k).
        upper: (B, k).
        origin: o, (B, k); NaN for a coordinate without a kink.
    """
    box = _Box(lower, upper, origin)
    points, values = starts, evaluated(value, starts)
    active = torch.ones_like(values, dtype=torch.bool)
    columns = [column for column in range(starts.shape[-1]) if bool((upper > lower)[:, column].any())]
    for sweep in range(SWEEPS if len(columns) > 1 else len(columns)):
        before, values_before = points, values
        for column in columns:
            if out is not None and out():
                return points, values
            direction = torch.zeros_like(points)
            direction[..., column] = 1.0
            zooms = COARSE if len(columns) > 1 and not sweep else ZOOMS
            moved, moved_values = _line_best(value, points, values, direction, box, zooms, grid=not sweep)
            points = torch.where(active.unsqueeze(-1), moved, points)
            values = torch.where(active, moved_values, values)
        if len(columns) > 1:
            moved, moved_values = _line_best(value, points, values, points - before, box, COARSE, grid=True)
            points = torch.where(active.unsqueeze(-1), moved, points)
            values = torch.where(active, moved_values, values)
        active = active & (values > values_before + LEVEL)
        if not sweep and len(points) > KEPT:
            best = values.topk(KEPT, dim=0).indices
            points = points.gather(0, best.unsqueeze(-1).expand(*best.shape, points.shape[-1]))
            values, active = values.gather(0, best), active.gather(0, best)
        if not bool(active.any()):
            break
    return points, values


class _Box:
    """A box with its kinks."""

    def __init__(self, lower: Tensor, upper: Tensor, origin: Tensor) -> None:
        self.lower, self.upper = lower, upper
        inside = (origin >= lower) & (origin <= upper)
        self.kink = torch.where(inside, origin, torch.full_like(origin, torch.nan))
        self.near = SNAP * (upper - lower)

    def inside(self, points: Tensor) -> Tensor:
        """The nearest points of the box, on a kink where they are close to one."""
        within = torch.minimum(torch.maximum(points, self.lower), self.upper)
        return torch.where((within - self.kink).abs() <= self.near, self.kink, within)

    def chord(self, points: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The range of t with points + t direction in the box, (S, B) each, and its kinks, (k, S, B)."""
        first, last = chord(points, direction, self.lower, self.upper)
        kinks = ((self.kink - points) / direction).where(direction != 0, 0.0).nan_to_num(0.0)
        kinks = torch.minimum(torch.maximum(kinks, first.unsqueeze(-1)), last.unsqueeze(-1))
        return first, last, kinks.movedim(-1, 0)


def chord(points: Tensor, direction: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """The ends of the t for which points + t direction lie in the box, (R, B) each; 0 if it is zero."""
    moves = direction != 0
    at_lower, at_upper = ((end - points) / direction.where(moves, 1.0) for end in (lower, upper))
    first = torch.minimum(at_lower, at_upper).where(moves, -torch.inf).amax(-1).clamp_max(0.0)
    last = torch.maximum(at_lower, at_upper).where(moves, torch.inf).amin(-1).clamp_min(0.0)
    return first.where(moves.any(-1), 0.0), last.where(moves.any(-1), 0.0)


def _line_best(
    value: Value, points: Tensor, values: Tensor, direction: Tensor, box: _Box, zooms: int, *, grid: bool
) -> tuple[Tensor, Tensor]:
    """The best points of lines, (S, B, k) and (S, B); a point stays where its line has no better one."""
    first, last, kinks = box.chord(points, direction)
    shares = torch.linspace(0, 1, GRID, dtype=points.dtype, device=points.device)
    around = torch.linspace(-1, 1, FINE, dtype=points.dtype, device=points.device)[:, None, None]
    best, best_values, best_points = torch.zeros_like(first), values, points
    length = (last - first) / (GRID - 1)
    steps = torch.cat([first + shares[:, None, None] * (last - first), kinks]) if grid else kinks
    for _ in range(zooms + 1):
        tried = box.inside(points + steps.unsqueeze(-1) * direction)
        candidates = evaluated(value, tried.flatten(0, 1)).unflatten(0, tried.shape[:2])
        highest, argmax = candidates.max(0)
        better = highest > best_values
        index = argmax[None, ..., None].expand(1, *argmax.shape, tried.shape[-1])
        best_points = torch.where(better.unsqueeze(-1), tried.gather(0, index).squeeze(0), best_points)
        best = torch.where(better, steps.gather(0, argmax.unsqueeze(0)).squeeze(0), best)
        best_values = torch.where(better, highest, best_values)
        steps = torch.minimum(torch.maximum(best + length * around, first), last)
        length = length / ((FINE - 1) / 2)
    return best_points, best_values


STARTS, LINE = 24, 17


@torch.no_grad()
def settled(
    one: AlterationObjective, charge: Charge, found: Tensor, out: Callable[[], bool]
) -> tuple[Tensor, Tensor]:
    """The best acceptable actions, climbing from those `found`, (B, k), and their net values, (B,)."""
    origin = charge.costs.origin.to(one.lower)
    starts = one.starts(STARTS).to(one.lower)
    initial = one.project(found.to(one.lower))
    kept = one.project(torch.where(origin.isnan(), initial, origin))
    promising = starts[evaluated(one.sought, starts).argmax(0), range(starts.shape[1])]
    climb_starts = torch.stack([kept, initial, (kept + initial) / 2, promising])
    ends, values = climb(one.sought, climb_starts, one.lower, one.upper, origin, out)
    best = _acceptable(one, one.sought, torch.cat([ends, torch.stack([initial, kept])]), values, kept)
    return best, charge.worth.to(best) * (one.compared_probability(best) - charge(best))


def _acceptable(one: AlterationObjective, value: Value, ends: Tensor, values: Tensor, kept: Tensor) -> Tensor:
    """The best acceptable of some points (n, B, k), of which the first have the given values; where none is,
    the best acceptable on the line from the best to the kept actions; else the best.
    """
    point_values = torch.cat([values, evaluated(value, ends[len(values) :])])
    accepted = one.acceptable(ends).to(point_values.device)
    if not bool(accepted.any(0).all()):
        best_end = ends[point_values.argmax(0), range(ends.shape[1])]
        shares = torch.linspace(0, 1, LINE, dtype=ends.dtype, device=ends.device)[:, None, None]
        path = best_end + shares * (kept - best_end)
        # Only where no end point is accepted: cases beside others are decided as if alone.
        usable = one.acceptable(path).to(point_values.device) & ~accepted.any(0)
        path_values = evaluated(value, path).masked_fill(~usable, -math.inf)
        ends = torch.cat([ends, path])
        point_values = torch.cat([point_values, path_values])
        accepted = torch.cat([accepted, usable])
    eligible = torch.where(accepted.any(0), accepted, torch.ones_like(accepted))
    best = point_values.masked_fill(~eligible, -math.inf).argmax(0)
    return ends[best, torch.arange(ends.shape[1], device=ends.device)]
