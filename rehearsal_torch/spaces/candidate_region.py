"""Candidate regions: a box with linear constraints on the actions.

Searches work in unit coordinates z in [0, 1]^d, a = lower + z (upper - lower); a constraint m'a <= d becomes
(m * width)'z <= d - m'lower. Initial points come from a scrambled Sobol sequence, of which the feasible ones
are kept. If the constraints leave so little volume that there are too few, or only points of a plane (a + b =
1), the sequence is one of a smaller box, around the region and along its widest directions (`frame`), and a
hit-and-run random walk in this box supplies what is still missing.

Constraints that leave only a plane are implied equalities: the width of the region in a direction, the
difference of two linear programs, is at most `FLAT`. Widths are taken in directions that are orthogonal to
all differences of points found so far, so that 2 d programs find the affine hull of the region.

Some coordinates may have levels, the only values that they may take; a coordinate that is held at one value
has this value as its only level. Levels are given in the actions' units, and `units` returns them exactly,
without rounding; its derivative in a coordinate with levels is zero. Points are then spread with every level
equally often: level j of L belongs to the Sobol coordinates from j / L to (j + 1) / L, so that of n = 2^m
points each level occurs n / L times, up to one. Under constraints they are brought to the nearest feasible
point if there are too few: coordinates with levels to the nearest ones, the others by projection. Where no
value of the others is feasible at these levels, the feasible combination of levels that is nearest in the sum
of absolute distances is found by mixed-integer linear programming, with one binary variable per level.

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

# Sobol points drawn per point required within constraints.
TRIES = 16
# The width of a region of the unit cube up to which it is flat in a direction.
FLAT = 1e-6
# The smallest length of a normal along a plane: shorter ones are orthogonal to it up to rounding.
SHORT = 1e-7
# Combinations of levels up to which all of them are listed.
MOST = 4096


@dataclass(frozen=True)
class CandidateRegion:
    """The feasible actions of an objective: lower bounds and widths (d,) in the actions' units, and
    constraints in unit coordinates, normals (l, d) and offsets (l,), without rows if there are none.
    """

    lower: Tensor
    width: Tensor
    normals: Tensor
    offsets: Tensor

    @classmethod
    def within(cls, lower: Tensor, upper: Tensor, limits: Polytope | None) -> "CandidateRegion":
        """Between bounds (d,), in the actions' units, and within constraints on the first coordinates."""
        size, width = len(lower), upper - lower
        if limits is None:
            return cls(lower, width, lower.new_zeros(0, size), lower.new_zeros(0))
        normals = torch.nn.functional.pad(limits.normals.to(lower), (0, size - limits.normals.shape[-1]))
        normals, offsets = normals * width, limits.offsets.to(lower) - normals @ lower
        length = normals.norm(dim=-1).clamp_min(1e-300)
        return cls(lower, width, normals / length.unsqueeze(-1), offsets / length)

    def at(self, levels: Mapping[int, Sequence[float]]) -> "CandidateRegion":
        """The region with levels at these coordinates alone: index of a coordinate to its levels."""
        if not levels and type(self) is CandidateRegion:
            return self
        parts = self.lower, self.width, self.normals, self.offsets
        ordered = {column: tuple(map(float, levels[column])) for column in sorted(levels)}
        return MixedRegion(*parts, ordered) if levels else CandidateRegion(*parts)

    def possible(self) -> bool:
        """Whether it has a point; always, without levels: `Polytope` refuses constraints without one."""
        return True

    @property
    def limited(self) -> bool:
        """Whether there are constraints besides the box."""
        return len(self.offsets) > 0

    def units(self, points: Tensor) -> Tensor:
        """Unit coordinates to actions' units, (..., d) -> (..., d)."""
        return self.lower + points * self.width

    def unit(self, points: Tensor) -> Tensor:
        """Actions' units to unit coordinates, (..., d) -> (..., d); 0.5 where the bounds coincide."""
        safe = torch.where(self.width > 0, self.width, torch.ones_like(self.width))
        return torch.where(self.width > 0, (points - self.lower) / safe, torch.full_like(self.width, 0.5))

    def contains(self, points: Tensor) -> Tensor:
        """Whether unit points lie in the region, (..., d) -> (...) bool."""
        inside = ((points >= 0) & (points <= 1)).all(-1)
        return inside & (points @ self.normals.mT <= self.offsets + 1e-9).all(-1)

    @cached_property
    def frame(self) -> tuple[Tensor, Tensor, Tensor]:
        """A box around the region along its widest directions: a corner (d,), orthonormal directions as rows
        (d, d), and the width in each, (d,).
        """
        directions = np.zeros((0, len(self.lower)))
        while len(directions) < len(self.lower):
            rest = np.eye(len(self.lower)) - directions.T @ directions
            along = rest[np.linalg.norm(rest, axis=1).argmax()]
            along = along / np.linalg.norm(along)
            step = self._end(along) - self._end(-along)
            if along @ step > FLAT:
                along = rest @ step / np.linalg.norm(rest @ step)
            directions = np.vstack([directions, along])
        most = np.array([along @ self._end(along) for along in directions])
        least = np.array([along @ self._end(-along) for along in directions])
        least = np.where(most - least <= FLAT, (least + most) / 2, least)
        parts = directions.T @ least, directions, most - least
        corner, rows, widths = (torch.from_numpy(part).to(self.lower) for part in parts)
        return corner, rows, widths

    def _end(self, along: np.ndarray) -> np.ndarray:
        """The farthest unit point in a direction."""
        rows, most = self.normals.cpu().numpy(), self.offsets.cpu().numpy()
        # An equality is two inequalities that only points on it satisfy, up to this tolerance.
        options = {"primal_feasibility_tolerance": 1e-10}
        found = linprog(-along, rows, most, bounds=(0.0, 1.0), method="highs", options=options)
        if found.x is None:
            raise ValueError("the linear program of the limits cannot be solved: use other units")
        return np.asarray(found.x)

    @cached_property
    def equalities(self) -> tuple[Tensor, Tensor]:
        """The equations that the constraints imply, in unit coordinates: orthonormal normals (e, d) and
        offsets (e,), without rows where the region has an interior.
        """
        if not self.limited or self._radius > FLAT:
            return self.normals[:0], self.offsets[:0]
        corner, directions, widths = self.frame
        return directions[widths <= FLAT], directions[widths <= FLAT] @ corner

    @cached_property
    def inequalities(self) -> tuple[Tensor, Tensor]:
        """The other constraints, normals (l, d) and offsets (l,): not those that are constant on the plane of
        the equalities.
        """
        flat, _ = self.equalities
        kept = (self.normals - self.normals @ flat.mT @ flat).norm(dim=-1) > SHORT
        return self.normals[kept], self.offsets[kept]

    @property
    def _radius(self) -> float:
        """The radius of the largest ball in the region, at most 1/2; below 0 if there is none."""
        rows = torch.cat([self.normals, self.normals.norm(dim=-1, keepdim=True)], -1).cpu().numpy()
        eye, one = np.eye(len(self.lower)), np.ones((len(self.lower), 1))
        rows = np.vstack([rows, np.hstack([eye, one]), np.hstack([-eye, one])])
        most = np.concatenate([self.offsets.cpu().numpy(), one[:, 0], 0 * one[:, 0]])
        found = linprog(-np.eye(len(eye) + 1)[-1], rows, most, bounds=(None, None), method="highs")
        return float(-found.fun) if found.success else -1.0

    def into(self, points: Tensor) -> Tensor:
        """The nearest feasible unit points, (n, d) -> (n, d)."""
        clipped = points.clamp(0.0, 1.0)
        inside = self.contains(clipped)
        if not self.limited or bool(inside.all()):
            return clipped
        moved, _ = self._moved(clipped, list(range(len(self.lower))))
        return torch.where(inside.unsqueeze(-1), clipped, moved)

    def _moved(self, points: Tensor, free: list[int]) -> tuple[Tensor, Tensor]:
        """Unit points with the coordinates `free` at the nearest feasible values, the others as they are, and
        whether there are any, (n, d) -> (n, d) and (n,) bool; others have no meaning.
        """
        held = [column for column in range(len(self.lower)) if column not in free]
        start, ones = points[:, free], torch.ones_like(points[0, free])
        (flat, level), (normals, offsets) = self.equalities, self.inequalities
        level = level - points[:, held] @ flat[:, held].mT
        base = start + (level - start @ flat[:, free].mT) @ torch.linalg.pinv(flat[:, free], rtol=SHORT).mT
        solved = ((level - base @ flat[:, free].mT).abs() <= 1e-9).all(-1)
        basis = self.plane(free)
        along = base @ basis
        rest = base - along @ basis.mT
        eye = torch.eye(len(free)).to(points)
        rows = torch.cat([normals[:, free], eye, -eye])
        left = offsets - 1e-9 - points[:, held] @ normals[:, held].mT
        sides = torch.cat([ones, torch.zeros_like(ones)]).expand(len(points), -1)
        bounds, rows = torch.cat([left, sides], -1) - rest @ rows.mT, rows @ basis
        moves = rows.norm(dim=-1) > SHORT
        fits = solved & (bounds[:, ~moves] >= -2e-9).all(-1)
        moved = points.clone()
        if bool(moves.any()):
            answer = project(along, torch.ones_like(along[0]), rows[moves], bounds[:, moves])
            along, fits = answer.points, fits & answer.feasible
        moved[:, free] = (along @ basis.mT + rest).clamp(0.0, 1.0)
        return moved, fits

    def finite(self, seed: int = 0) -> Tensor | None:
        """All unit points of the region, (m, d), where they are few, in the order of a Sobol sequence; None
        where some coordinate without levels may move, or there are more than `MOST` combinations of levels.
        """
        del seed
        movable = self.plane(list(range(len(self.lower)))).shape[-1]
        return None if movable else self.into(torch.full_like(self.lower, 0.5)[None])

    def plane(self, free: Sequence[int]) -> Tensor:
        """Directions in which the coordinates `free` may move while the others are held: an orthonormal basis
        (f, r) of what the equalities leave.
        """
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
            tried = sobol(len(self.lower), seed).draw(tries, dtype=torch.float64).to(self.lower)
            feasible = tried[self.contains(tried)][:count] if self.limited else tried
        if len(feasible) == count:
            return feasible
        (corner, directions, widths), most = self.frame, count - len(feasible)
        axes = (directions * widths.unsqueeze(-1))[widths > FLAT]
        if not len(axes):
            return torch.cat([feasible, self.into(corner.expand(most, -1))])
        drawn = sobol(len(axes), seed).draw(TRIES * most, dtype=torch.float64).to(corner)
        tried = (corner + drawn @ axes).clamp(0.0, 1.0)
        feasible = torch.cat([feasible, tried[self.contains(tried)][:most]])
        if len(feasible) == count:
            return feasible
        # Few regions are that narrow, and BoTorch takes as long to load as everything that reads a table.
        from botorch.utils.sampling import HitAndRunPolytopeSampler

        eye = torch.eye(len(corner)).to(corner)
        normals = torch.cat([self.normals, eye, -eye])
        offsets = torch.cat([self.offsets, torch.ones_like(corner), torch.zeros_like(corner)])
        rows, left = normals @ axes.mT, offsets - normals @ corner
        kept = rows.norm(dim=-1) > SHORT * float(axes.norm(dim=-1).min())
        walk = HitAndRunPolytopeSampler(
            (rows[kept], left[kept].unsqueeze(-1)),
            bounds=torch.stack([torch.zeros_like(axes[:, 0]), torch.ones_like(axes[:, 0])]),
            n_burnin=500,
            n_thinning=8,
            seed=seed,
        )
        walked = walk.draw(count - len(feasible)).to(corner)
        return torch.cat([feasible, self.into(corner + walked @ axes)])


# Distance in unit coordinates up to which a point is at a level.
AT = 1e-9
# Nodes of the search tree after which a mixed-integer program is given up.
NODES = 10_000


@dataclass(frozen=True)
class MixedRegion(CandidateRegion):
    """A candidate region with levels: index of a coordinate to its levels in ascending order, in the actions'
    units, within the coordinate's bounds; no entry for coordinates without levels.
    """

    levels: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

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
        drawn = self._drawn(4 * self.combinations, seed)[:, self.places]
        ordered = dict.fromkeys(map(tuple, torch.cat([drawn, self.every()]).tolist()))
        points = torch.full((self.combinations, len(self.lower)), 0.5).to(self.lower)
        points[:, self.places] = self.lower.new_tensor(list(ordered))
        moved, feasible = self.slices(points)
        return moved[feasible]

    def relaxed(self, most: int) -> CandidateRegion:
        """The region in which coordinates with more than `most` levels (at least one) have none."""
        kept = {column: values for column, values in self.levels.items() if len(values) <= max(most, 1)}
        return self.at(kept)

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
        """The nearest feasible unit points at the nearest levels that allow any, (n, d) -> (n, d); ValueError
        if no combination of levels satisfies the constraints.
        """
        nearest_points, feasible = self.slices(self.at_levels(points.clamp(0.0, 1.0)))
        if bool(feasible.all()):
            return nearest_points
        moved = nearest_points[~feasible]
        combinations, which = moved[:, self.places].unique(dim=0, return_inverse=True)
        others = [self._nearest_levels(levels) for levels in combinations]
        if any(levels is None for levels in others):
            raise ValueError(
                "no combination of levels satisfies the limits: check the signs of the limits, or offer "
                "other levels"
            )
        moved[:, self.places] = torch.stack([levels for levels in others if levels is not None])[which]
        nearest_points[~feasible], _ = self.slices(moved)
        return nearest_points

    def slices(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Points at levels with the other coordinates moved to the nearest feasible ones at these levels, (n,
        d) -> (n, d); and whether there are any, (n,) bool.
        """
        inside = self.contains(points)
        if not self.limited or bool(inside.all()):
            return points, inside
        moved, free = points.clone(), self.free
        if not free:
            return moved, inside
        moved[~inside], fits = self._moved(points[~inside], free)
        feasible = inside.clone()
        feasible[~inside] = fits
        return moved, feasible

    def possible(self) -> bool:
        """Whether some combination of levels satisfies the constraints."""
        middle = self.at_levels(torch.full_like(self.lower, 0.5))[self.places]
        return not self.limited or self._nearest_levels(middle) is not None

    def spread(self, count: int, seed: int) -> Tensor:
        """Unit points (count, d) at levels, spread over the region; points may coincide where there are few
        combinations of levels and no other coordinates.
        """
        tried = self._drawn(count * (TRIES if self.limited else 1), seed)
        feasible = tried[self.contains(tried)][:count] if self.limited else tried
        if len(feasible) == count:
            return feasible
        held = [column for column, values in self.levels.items() if len(values) == 1]
        equal = torch.eye(len(self.lower)).to(self.lower)[held]
        at = self.lower.new_tensor([self.unit_levels[column][0] for column in held])
        normals, offsets = torch.cat([self.normals, equal, -equal]), torch.cat([self.offsets, at, -at])
        loose = CandidateRegion(self.lower, self.width, normals, offsets)
        return torch.cat([feasible, self.into(loose.spread(count - len(feasible), seed))])

    def neighbours(self, points: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """The points (m, d) with one coordinate at another of its levels, and the others moved to feasible
        values where the constraints require it, and the index of the point of each, (m,). The points (n, d)
        are in unit coordinates, at levels; of coordinates with more than `most` levels only the next ones on
        both sides are tried.
        """
        changes, origins = [points[:0]], [torch.zeros(0, dtype=torch.long, device=points.device)]
        indices = torch.arange(len(points), device=points.device)
        for column, values in self.unit_levels.items():
            changed = points.unsqueeze(1).repeat(1, len(values), 1)
            changed[..., column] = points.new_tensor(values)
            current = (changed[..., column] - points[:, None, column]).abs().argmin(-1, keepdim=True)
            steps = (torch.arange(len(values), device=points.device) - current).abs()
            other = (steps > 0) & ((steps == 1) if len(values) > most else True)
            changes.append(changed[other])
            origins.append(indices.unsqueeze(1).expand(-1, len(values))[other])
        moved, feasible = self.slices(torch.cat(changes))
        return moved[feasible], torch.cat(origins)[feasible]

    def _unit(self, column: int, values: Tensor) -> Tensor:
        width = float(self.width[column])
        return (values - self.lower[column]) / width if width > 0 else torch.full_like(values, 0.5)

    def _drawn(self, count: int, seed: int) -> Tensor:
        """Sobol points of the unit box, with all levels equally often, (count, d)."""
        drawn = sobol(len(self.lower), seed).draw(count, dtype=torch.float64).to(self.lower)
        for column, values in self.unit_levels.items():
            known = drawn.new_tensor(values)
            drawn[:, column] = known[(drawn[:, column] * len(known)).long().clamp_max(len(known) - 1)]
        return drawn

    def _nearest_levels(self, levels: Tensor) -> Tensor | None:
        """The feasible levels nearest to some (places,) by the sum of distances; None if there are none."""
        # Variables: the point, the distance of each coordinate with levels, and which level it has.
        known, near = [self.unit_levels[column] for column in self.places], levels.cpu().numpy()
        point, distance = np.eye(len(self.lower))[self.places], np.eye(len(known))
        value, single = block_diag(*known), block_diag(*([1.0] * len(values) for values in known))
        rows = np.block(
            [
                [point, -distance, 0 * value],
                [-point, -distance, 0 * value],
                [-point, 0 * distance, value],
                [0 * point, 0 * distance, single],
            ]
        )
        (size, count), total = point.shape[::-1], rows.shape[1]
        none, half = np.zeros(count), np.full(2 * count, -np.inf)
        lower, upper = np.concatenate([half, none, none + 1]), np.concatenate([near, -near, none, none + 1])
        # Coordinate by coordinate, and then the constraints.
        order = np.arange(4 * count).reshape(4, count).T.ravel()
        limits = LinearConstraint(
            np.pad(self.normals.cpu().numpy(), ((0, 0), (0, total - size))), ub=self.offsets.cpu().numpy()
        )
        whole = np.arange(total) >= size + count
        solution = milp(
            ((np.arange(total) >= size) & ~whole).astype(float),
            integrality=whole.astype(float),
            bounds=Bounds(np.zeros(total), np.ones(total)),
            constraints=[LinearConstraint(rows[order], lower[order], upper[order]), limits],
            options={"node_limit": NODES},
        )
        if solution.x is None:
            return None
        nearest_point = self.at_levels(self.lower.new_tensor(solution.x[None, :size]).clamp(0.0, 1.0))
        moved, feasible = self.slices(nearest_point)
        return moved[0, self.places] if bool(feasible[0]) else None
