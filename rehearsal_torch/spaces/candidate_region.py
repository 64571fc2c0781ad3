"""Candidate regions: a box with linear constraints on the actions.

Searches work in unit coordinates z in [0, 1]^d, a = lower + z (upper - lower); a constraint m'a <= d becomes
(m * width)'z <= d - m'lower. Initial points come from a scrambled Sobol sequence, of which the feasible ones
are kept. If the constraints leave so little volume that there are too few, or only points of a plane (a + b =
1), the sequence is one of a smaller box, around the region and along its widest directions (`frame`), and a
hit-and-run random walk in this box supplies what is still missing.

Constraints that leave only a plane are implied equalities: the width of the region in a direction, the
difference of two linear programs, is at most `FLAT`. Widths are taken in directions that are orthogonal to
all differences of points found so far, so that 2 d programs find the affine hull of the region.

Where the scale is log, z is the share of the way from log(lower) to log(upper): this is all that a search
knows of it. Such a coordinate has no linear constraints.

Some coordinates may have levels, the only values that they may take; a coordinate that is held at one value
has this value as its only level, and one that is not set NaN, which is 0.5 in unit coordinates. Levels are
given in the actions' units, and `units` returns them exactly, without rounding; its derivative in a
coordinate with levels is zero. Points are then spread with every level equally often: level j of L belongs to
the Sobol coordinates from j / L to (j + 1) / L, so that of n = 2^m points each level occurs n / L times, up
to one; on a log scale a level has the part of [0, 1] that is nearest to it. Under constraints they are
brought to the nearest feasible point if there are too few: coordinates with levels to the nearest ones, the
others by projection. Where no value of the others is feasible at these levels, the feasible combination of
levels that is nearest in the sum of absolute distances is found by mixed-integer linear programming, with one
binary variable per level.

Source: Sobol (1967) and Owen (1998) (scrambling); Smith (1984) (hit and run); Fukuda (2020), Polyhedral
computation, Sec. 8.3 (affine hulls by linear programs).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
import torch
from scipy.linalg import block_diag
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from torch import Tensor

from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.box import nearest
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.spaces.projection import project

TRIES = 16  # Sobol points drawn per point required within constraints.
FLAT = 1e-6  # The width of a region of the unit cube up to which it is flat in a direction.
# The smallest length of a normal along a plane: shorter ones are orthogonal to it up to rounding.
SHORT = 1e-7
# Distances in unit coordinates up to which a point is at a level, and at a bound.
AT, ROUNDED = 1e-9, 1e-12
MOST = 4096  # Combinations of levels up to which all of them are listed.


@dataclass(frozen=True)
class CandidateRegion:
    """Feasible actions: lower bounds and widths (d,), logarithms where `logs` has the bounds of a coordinate
    in the actions' units; constraints (l, d), (l,) in unit coordinates.
    """

    lower: Tensor
    width: Tensor
    normals: Tensor
    offsets: Tensor
    logs: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def within(
        cls, lower: Tensor, upper: Tensor, limits: Polytope | None, logs: Sequence[int] = ()
    ) -> "CandidateRegion":
        """Between bounds (d,), in the actions' units, and within constraints on the first coordinates."""
        ends = {column: (float(lower[column]), float(upper[column])) for column in logs}
        lower, upper = logarithms(lower, logs), logarithms(upper, logs)
        size, width = len(lower), upper - lower
        if limits is None:
            return cls(lower, width, lower.new_zeros(0, size), lower.new_zeros(0), ends)
        normals = torch.nn.functional.pad(limits.normals.to(lower), (0, size - limits.normals.shape[-1]))
        normals, offsets = normals * width, limits.offsets.to(lower) - normals @ lower
        length = normals.norm(dim=-1).clamp_min(1e-300)
        return cls(lower, width, normals / length.unsqueeze(-1), offsets / length, ends)

    def at(self, levels: Mapping[int, Sequence[float]], classes: Sequence[int] = ()) -> "CandidateRegion":
        """The region with levels at these coordinates alone: index of a coordinate to its levels."""
        if not levels and type(self) is CandidateRegion:
            return self
        parts = self.lower, self.width, self.normals, self.offsets, self.logs
        ordered = {column: tuple(map(float, levels[column])) for column in sorted(levels)}
        return MixedRegion(*parts, ordered, tuple(classes)) if levels else CandidateRegion(*parts)

    def possible(self) -> bool:
        """Whether it has a point; always, without levels: `Polytope` refuses constraints without one."""
        return True

    @property
    def limited(self) -> bool:
        """Whether there are constraints besides the box."""
        return len(self.offsets) > 0

    def units(self, points: Tensor) -> Tensor:
        """Unit coordinates to actions' units, (..., d) -> (..., d), at bounds up to rounding."""
        ends = points.detach().round() - points.detach()
        points = points + ends.where(ends.abs() <= ROUNDED, 0.0)
        actions = self.lower + points * self.width
        if not self.logs:
            return actions
        actions = actions.clone()
        for column, (low, high) in self.logs.items():
            value, share = actions[..., column].exp(), points[..., column]
            # The bounds themselves, at which the derivative is that of the exponential.
            exact = torch.where(share <= 0, low, torch.where(share >= 1, high, value.clamp(low, high)))
            actions[..., column] = value + (exact - value).detach()
        return actions

    def unit(self, points: Tensor) -> Tensor:
        """Actions' units to unit coordinates, (..., d) -> (..., d); 0.5 where bounds coincide, and of NaN."""
        safe = torch.where(self.width > 0, self.width, torch.ones_like(self.width))
        points = logarithms(points, list(self.logs))
        unit = torch.where(self.width > 0, (points - self.lower) / safe, torch.full_like(self.width, 0.5))
        return unit.nan_to_num(0.5)

    def contains(self, points: Tensor) -> Tensor:
        """Whether unit points lie in the region, (..., d) -> (...) bool."""
        inside = ((points >= 0) & (points <= 1)).all(-1)
        return inside & (points @ self.normals.mT <= self.offsets + 1e-9).all(-1)

    @cached_property
    def frame(self) -> tuple[Tensor, Tensor, Tensor]:
        """A box along the region's widest directions: corner (d,), directions (d, d), widths (d,)."""
        directions = np.zeros((0, len(self.lower)))
        while len(directions) < len(self.lower):
            complement = np.eye(len(self.lower)) - directions.T @ directions
            along = complement[np.linalg.norm(complement, axis=1).argmax()]
            along = along / np.linalg.norm(along)
            step = self._farthest(along) - self._farthest(-along)
            if along @ step > FLAT:
                along = complement @ step / np.linalg.norm(complement @ step)
            directions = np.vstack([directions, along])
        highest = np.array([along @ self._farthest(along) for along in directions])
        lowest = np.array([along @ self._farthest(-along) for along in directions])
        lowest = np.where(highest - lowest <= FLAT, (lowest + highest) / 2, lowest)
        arrays = directions.T @ lowest, directions, highest - lowest
        corner, rows, widths = (torch.from_numpy(array).to(self.lower) for array in arrays)
        return corner, rows, widths

    def _farthest(self, direction: np.ndarray) -> np.ndarray:
        rows, limits = self.normals.cpu().numpy(), self.offsets.cpu().numpy()
        # An equality is two inequalities that only points on it satisfy, up to this tolerance.
        options = {"primal_feasibility_tolerance": 1e-10}
        solution = linprog(-direction, rows, limits, bounds=(0.0, 1.0), method="highs", options=options)
        if solution.x is None:
            raise ValueError("the linear program of the limits cannot be solved: use other units")
        return np.asarray(solution.x)

    @cached_property
    def equalities(self) -> tuple[Tensor, Tensor]:
        """Implied equations: orthonormal normals (e, d) and offsets (e,); e = 0 with an interior."""
        if not self.limited or self._radius > FLAT:
            return self.normals[:0], self.offsets[:0]
        corner, directions, widths = self.frame
        return directions[widths <= FLAT], directions[widths <= FLAT] @ corner

    @cached_property
    def inequalities(self) -> tuple[Tensor, Tensor]:
        """The constraints (l, d), (l,) that are not constant on the plane of the equalities."""
        flat, _ = self.equalities
        varying = (self.normals - self.normals @ flat.mT @ flat).norm(dim=-1) > SHORT
        return self.normals[varying], self.offsets[varying]

    @property
    def _radius(self) -> float:
        """The radius of the largest ball in the region, at most 1/2; below 0 if there is none."""
        rows = torch.cat([self.normals, self.normals.norm(dim=-1, keepdim=True)], -1).cpu().numpy()
        eye, ones = np.eye(len(self.lower)), np.ones((len(self.lower), 1))
        rows = np.vstack([rows, np.hstack([eye, ones]), np.hstack([-eye, ones])])
        limits = np.concatenate([self.offsets.cpu().numpy(), ones[:, 0], 0 * ones[:, 0]])
        solution = linprog(-np.eye(len(eye) + 1)[-1], rows, limits, bounds=(None, None), method="highs")
        return float(-solution.fun) if solution.success else -1.0

    def into(self, points: Tensor) -> Tensor:
        """The nearest feasible unit points, (n, d) -> (n, d)."""
        clipped = points.clamp(0.0, 1.0)
        inside = self.contains(clipped)
        if not self.limited or bool(inside.all()):
            return clipped
        moved, _ = self._projected(clipped, list(range(len(self.lower))))
        return torch.where(inside.unsqueeze(-1), clipped, moved)

    def _projected(self, points: Tensor, free: list[int]) -> tuple[Tensor, Tensor]:
        """Unit points with the coordinates `free` at the nearest feasible values, the others as they are, and
        whether there are any, (n, d) -> (n, d) and (n,) bool; others have no meaning.
        """
        fixed = [column for column in range(len(self.lower)) if column not in free]
        start, ones = points[:, free], torch.ones_like(points[0, free])
        (flat, level), (normals, offsets) = self.equalities, self.inequalities
        level = level - points[:, fixed] @ flat[:, fixed].mT
        base = start + (level - start @ flat[:, free].mT) @ torch.linalg.pinv(flat[:, free], rtol=SHORT).mT
        solved = ((level - base @ flat[:, free].mT).abs() <= 1e-9).all(-1)
        basis = self.plane(free)
        coordinates = base @ basis
        normal_part = base - coordinates @ basis.mT
        eye = torch.eye(len(free)).to(points)
        rows = torch.cat([normals[:, free], eye, -eye])
        slack = offsets - 1e-9 - points[:, fixed] @ normals[:, fixed].mT
        sides = torch.cat([ones, torch.zeros_like(ones)]).expand(len(points), -1)
        bounds, rows = torch.cat([slack, sides], -1) - normal_part @ rows.mT, rows @ basis
        moves = rows.norm(dim=-1) > SHORT
        fits = solved & (bounds[:, ~moves] >= -2e-9).all(-1)
        nearest_points = points.clone()
        if bool(moves.any()):
            answer = project(coordinates, torch.ones_like(coordinates[0]), rows[moves], bounds[:, moves])
            coordinates, fits = answer.points, fits & answer.feasible
        nearest_points[:, free] = (coordinates @ basis.mT + normal_part).clamp(0.0, 1.0)
        return nearest_points, fits

    def finite(self, seed: int = 0) -> Tensor | None:
        """All unit points (m, d) if none may move freely, up to `MOST` combinations; else None."""
        del seed
        movable = self.plane(list(range(len(self.lower)))).shape[-1]
        return None if movable else self.into(torch.full_like(self.lower, 0.5)[None])

    def plane(self, free: Sequence[int]) -> Tensor:
        """An orthonormal basis (f, r) of moves of the coordinates `free` that keep the equalities."""
        flat = self.equalities[0][:, list(free)]
        if not len(flat):
            return torch.eye(len(free)).to(self.lower)
        _, sizes, basis = torch.linalg.svd(flat)
        return basis[int((sizes > SHORT).sum()) :].mT

    def spread(self, count: int, seed: int) -> Tensor:
        """Unit points (count, d), spread over the region."""
        tries = count * (TRIES if self.limited else 1)
        feasible = self.lower.new_zeros(0, len(self.lower))
        if not len(self.equalities[0]):
            points = sobol(len(self.lower), seed).draw(tries, dtype=torch.float64).to(self.lower)
            feasible = points[self.contains(points)][:count] if self.limited else points
        if len(feasible) == count:
            return feasible
        (corner, directions, widths), missing = self.frame, count - len(feasible)
        axes = (directions * widths.unsqueeze(-1))[widths > FLAT]
        if not len(axes):
            return torch.cat([feasible, self.into(corner.expand(missing, -1))])
        unit = sobol(len(axes), seed).draw(TRIES * missing, dtype=torch.float64).to(corner)
        points = (corner + unit @ axes).clamp(0.0, 1.0)
        feasible = torch.cat([feasible, points[self.contains(points)][:missing]])
        if len(feasible) == count:
            return feasible
        # Few regions are that narrow, and BoTorch takes as long to load as everything that reads a table.
        from botorch.utils.sampling import HitAndRunPolytopeSampler

        eye = torch.eye(len(corner)).to(corner)
        normals = torch.cat([self.normals, eye, -eye])
        offsets = torch.cat([self.offsets, torch.ones_like(corner), torch.zeros_like(corner)])
        rows, slack = normals @ axes.mT, offsets - normals @ corner
        varying = rows.norm(dim=-1) > SHORT * float(axes.norm(dim=-1).min())
        walk = HitAndRunPolytopeSampler(
            (rows[varying], slack[varying].unsqueeze(-1)),
            bounds=torch.stack([torch.zeros_like(axes[:, 0]), torch.ones_like(axes[:, 0])]),
            n_burnin=500,
            n_thinning=8,
            seed=seed,
        )
        walked = walk.draw(count - len(feasible)).to(corner)
        return torch.cat([feasible, self.into(corner + walked @ axes)])


NODES = 10_000  # Nodes of the search tree after which a mixed-integer program is given up.


@dataclass(frozen=True)
class MixedRegion(CandidateRegion):
    """A region with levels: coordinate to its ascending levels in the actions' units; none for others. In
    coordinates of `classes` they have no order.
    """

    levels: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    classes: tuple[int, ...] = ()

    @property
    def places(self) -> list[int]:
        """The coordinates with levels."""
        return list(self.levels)

    @property
    def free(self) -> list[int]:
        """The coordinates without levels."""
        return [column for column in range(len(self.lower)) if column not in self.levels]

    @property
    def combinations(self) -> int:
        """The number of combinations of levels, whether or not the constraints allow them."""
        return math.prod(map(len, self.levels.values()))

    @cached_property
    def unit_levels(self) -> dict[int, tuple[float, ...]]:
        """The levels in unit coordinates."""
        return {
            column: tuple(self._unit(column, self.lower.new_tensor(values)).tolist())
            for column, values in self.levels.items()
        }

    def every(self) -> Tensor:
        """All combinations of levels, in unit coordinates, (c, places)."""
        return self.lower.new_tensor(list(product(*self.unit_levels.values())))

    def finite(self, seed: int = 0) -> Tensor | None:
        """As for a region without levels; coordinates without them are held by the constraints."""
        if self.combinations > MOST or self.plane(self.free).shape[-1]:
            return None
        sobol_levels = self._sobol(4 * self.combinations, seed)[:, self.places]
        ordered = dict.fromkeys(map(tuple, torch.cat([sobol_levels, self.every()]).tolist()))
        points = torch.full((self.combinations, len(self.lower)), 0.5).to(self.lower)
        points[:, self.places] = self.lower.new_tensor(list(ordered))
        moved, feasible = self.slices(points)
        return moved[feasible]

    def relaxed(self, most: int) -> CandidateRegion:
        """The region in which coordinates with more than `most` levels (at least one) have none."""
        levels = {column: values for column, values in self.levels.items() if len(values) <= max(most, 1)}
        return self.at(levels)

    def units(self, points: Tensor) -> Tensor:
        """Unit coordinates to actions' units, (..., d) -> (..., d), at the nearest levels."""
        actions = super().units(points).clone()
        for column, values in self.levels.items():
            actions[..., column] = nearest(actions[..., column].detach(), values)
        return actions

    def contains(self, points: Tensor) -> Tensor:
        """Whether unit points lie in the region and at levels, (..., d) -> (...) bool."""
        away = (self.at_levels(points) - points).abs().amax(-1)
        return super().contains(points) & (away <= AT)

    def at_levels(self, points: Tensor) -> Tensor:
        """The points with the nearest levels, in unit coordinates, (..., d) -> (..., d)."""
        moved = points.clone()
        for column, values in self.unit_levels.items():
            moved[..., column] = nearest(points[..., column], values)
        return moved

    def into(self, points: Tensor) -> Tensor:
        """The nearest feasible points at the nearest levels, (n, d); ValueError if none satisfies."""
        nearest_points, feasible = self.slices(self.at_levels(points.clamp(0.0, 1.0)))
        if bool(feasible.all()):
            return nearest_points
        moved = nearest_points[~feasible]
        combinations, which = moved[:, self.places].unique(dim=0, return_inverse=True)
        replacements = [self._nearest_levels(levels) for levels in combinations]
        if any(levels is None for levels in replacements):
            raise ValueError(
                "no combination of levels satisfies the limits: check the signs of the limits, or offer "
                "other levels"
            )
        moved[:, self.places] = torch.stack([levels for levels in replacements if levels is not None])[which]
        nearest_points[~feasible], _ = self.slices(moved)
        return nearest_points

    def slices(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Points with all but levels moved to feasible values, (n, d), and whether it worked, (n,) bool."""
        inside = self.contains(points)
        if not self.limited or bool(inside.all()):
            return points, inside
        moved, free = points.clone(), self.free
        if not free:
            return moved, inside
        moved[~inside], fits = self._projected(points[~inside], free)
        feasible = inside.clone()
        feasible[~inside] = fits
        return moved, feasible

    def possible(self) -> bool:
        """Whether some combination of levels satisfies the constraints."""
        middle = self.at_levels(torch.full_like(self.lower, 0.5))[self.places]
        return not self.limited or self._nearest_levels(middle) is not None

    def spread(self, count: int, seed: int) -> Tensor:
        """Points (count, d) at levels over the region, which may coincide if there are few."""
        points = self._sobol(count * (TRIES if self.limited else 1), seed)
        feasible = points[self.contains(points)][:count] if self.limited else points
        if len(feasible) == count:
            return feasible
        constant = [column for column, values in self.levels.items() if len(values) == 1]
        equal = torch.eye(len(self.lower)).to(self.lower)[constant]
        at = self.lower.new_tensor([self.unit_levels[column][0] for column in constant])
        normals, offsets = torch.cat([self.normals, equal, -equal]), torch.cat([self.offsets, at, -at])
        loose = CandidateRegion(self.lower, self.width, normals, offsets)
        return torch.cat([feasible, self.into(loose.spread(count - len(feasible), seed))])

    def neighbours(self, points: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """The points (m, d) with one coordinate at another level (only adjacent ones of more than `most`),
        moved to feasible values where needed, and the index in points (n, d), at levels, of each, (m,).
        """
        changes, origins = [points[:0]], [torch.zeros(0, dtype=torch.long, device=points.device)]
        indices = torch.arange(len(points), device=points.device)
        for column, values in self.unit_levels.items():
            changed = points.unsqueeze(1).repeat(1, len(values), 1)
            changed[..., column] = points.new_tensor(values)
            current = (changed[..., column] - points[:, None, column]).abs().argmin(-1, keepdim=True)
            steps = (torch.arange(len(values), device=points.device) - current).abs()
            many = len(values) > most and column not in self.classes
            different = (steps > 0) & ((steps == 1) if many else True)
            changes.append(changed[different])
            origins.append(indices.unsqueeze(1).expand(-1, len(values))[different])
        moved, feasible = self.slices(torch.cat(changes))
        return moved[feasible], torch.cat(origins)[feasible]

    def _unit(self, column: int, values: Tensor) -> Tensor:
        width = float(self.width[column])
        values = values.log() if column in self.logs else values
        unit = (values - self.lower[column]) / width if width > 0 else torch.full_like(values, 0.5)
        return unit.nan_to_num(0.5)

    def _sobol(self, count: int, seed: int) -> Tensor:
        """Sobol points of the unit box, with all levels equally often, (count, d)."""
        points = sobol(len(self.lower), seed).draw(count, dtype=torch.float64).to(self.lower)
        for column, values in self.unit_levels.items():
            choices = points.new_tensor(values)
            if column in self.logs and len(choices) > 1:
                middles = (choices[1:] + choices[:-1]) / 2
                first, last = 2 * choices[0] - middles[0], 2 * choices[-1] - middles[-1]
                points[:, column] = choices[
                    torch.bucketize(torch.lerp(first, last, points[:, column]), middles)
                ]
                continue
            points[:, column] = choices[(points[:, column] * len(choices)).long().clamp_max(len(choices) - 1)]
        return points

    def _nearest_levels(self, levels: Tensor) -> Tensor | None:
        """The feasible levels nearest to some (places,) by the sum of distances; None if there are none."""
        # Variables: the point, the distance of each coordinate with levels, and which level it has.
        choices, goal = [self.unit_levels[column] for column in self.places], levels.cpu().numpy()
        point, distance = np.eye(len(self.lower))[self.places], np.eye(len(choices))
        value, single = block_diag(*choices), block_diag(*([1.0] * len(values) for values in choices))
        rows = np.block(
            [
                [point, -distance, 0 * value],
                [-point, -distance, 0 * value],
                [-point, 0 * distance, value],
                [0 * point, 0 * distance, single],
            ]
        )
        (size, count), total = point.shape[::-1], rows.shape[1]
        zero, free = np.zeros(count), np.full(2 * count, -np.inf)
        lower, upper = np.concatenate([free, zero, zero + 1]), np.concatenate([goal, -goal, zero, zero + 1])
        # Coordinate by coordinate, and then the constraints.
        order = np.arange(4 * count).reshape(4, count).T.ravel()
        limits = LinearConstraint(
            np.pad(self.normals.cpu().numpy(), ((0, 0), (0, total - size))), ub=self.offsets.cpu().numpy()
        )
        binary = np.arange(total) >= size + count
        solution = milp(
            ((np.arange(total) >= size) & ~binary).astype(float),
            integrality=binary.astype(float),
            bounds=Bounds(np.zeros(total), np.ones(total)),
            constraints=[LinearConstraint(rows[order], lower[order], upper[order]), limits],
            options={"node_limit": NODES},
        )
        if solution.x is None:
            return None
        nearest_point = self.at_levels(self.lower.new_tensor(solution.x[None, :size]).clamp(0.0, 1.0))
        moved, feasible = self.slices(nearest_point)
        return moved[0, self.places] if bool(feasible[0]) else None


def logarithms(values: Tensor, columns: Sequence[int]) -> Tensor:
    """Values (..., d) with the logarithms of some columns."""
    if not columns:
        return values
    values = values.clone()
    values[..., list(columns)] = values[..., list(columns)].log()
    return values
