"""Candidate regions: a box with linear constraints on the actions.

Searches work in unit coordinates z in [0, 1]^d, a = lower + z (upper - lower); a constraint m'a <= d becomes
(m * width)'z <= d - m'lower. Initial points come from a scrambled Sobol sequence, of which the feasible ones
are kept; if the constraints leave so little volume that there are too few, a hit-and-run random walk supplies
the rest.

Source: Sobol (1967) and Owen (1998) (scrambling); Smith (1984) (hit and run).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.spaces.projection import project

# Sobol points drawn per point required within constraints.
TRIES = 16


@dataclass(frozen=True)
class CandidateRegion:
    """The feasible actions of an objective, in unit coordinates.

    Attributes:
        lower: (d,), in the actions' units.
        width: (d,), in the actions' units.
        normals: (l, d), in unit coordinates; no rows if there are no constraints.
        offsets: (l,).
    """

    lower: Tensor
    width: Tensor
    normals: Tensor
    offsets: Tensor

    @classmethod
    def within(cls, lower: Tensor, upper: Tensor, limits: Polytope | None) -> "CandidateRegion":
        """The region between bounds (d,), in the actions' units, and within constraints on the first
        coordinates.
        """
        size, width = len(lower), upper - lower
        if limits is None:
            return cls(lower, width, lower.new_zeros(0, size), lower.new_zeros(0))
        normals = torch.nn.functional.pad(limits.normals.to(lower), (0, size - limits.normals.shape[-1]))
        normals, offsets = normals * width, limits.offsets.to(lower) - normals @ lower
        length = normals.norm(dim=-1).clamp_min(1e-300)
        return cls(lower, width, normals / length.unsqueeze(-1), offsets / length)

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

    def into(self, points: Tensor) -> Tensor:
        """The nearest feasible unit points, (n, d) -> (n, d)."""
        clipped = points.clamp(0.0, 1.0)
        if not self.limited or bool(self.contains(clipped).all()):
            return clipped
        eye = torch.eye(points.shape[-1]).to(points)
        normals = torch.cat([self.normals, eye, -eye])
        offsets = torch.cat([self.offsets - 1e-9, torch.ones_like(points[0]), torch.zeros_like(points[0])])
        found = project(clipped, torch.ones_like(points[0]), normals, offsets.expand(len(points), -1))
        return torch.where(self.contains(clipped).unsqueeze(-1), clipped, found.points.clamp(0.0, 1.0))

    def spread(self, count: int, seed: int) -> Tensor:
        """Unit points (count, d), spread over the region."""
        engine = sobol(len(self.lower), seed)
        if not self.limited:
            return engine.draw(count, dtype=torch.float64).to(self.lower)
        tried = engine.draw(TRIES * count, dtype=torch.float64).to(self.lower)
        found = tried[self.contains(tried)][:count]
        if len(found) == count:
            return found
        # Few regions are that narrow, and BoTorch takes as long to load as everything that reads a table.
        from botorch.utils.sampling import HitAndRunPolytopeSampler

        bounds = torch.stack([torch.zeros_like(self.lower), torch.ones_like(self.lower)])
        walk = HitAndRunPolytopeSampler(
            (self.normals, self.offsets.unsqueeze(-1)), bounds=bounds, n_burnin=500, n_thinning=8, seed=seed
        )
        return torch.cat([found, self.into(walk.draw(count - len(found)).to(self.lower))])
