"""Coordinates of the outcomes in which the faces of the desired region are few linear bounds.

The region is {y : m_k'y <= d_k, k = 1..l}. Its slack d_k - m_k'y is a linear function of y, so that few
regressions suffice: with q coordinates t = B y,

    d_k - m_k'y = d_k - n_k't.

The rows of B are the distinct directions of the normals, of length one and up to their sign, if there are no
more of them than outcomes: each face then bounds one coordinate. Otherwise (a polygon in two outcomes) B is
the identity, and the coordinates are the outcomes themselves.

A coordinate holds how far each row is from the bound, where the indicator of the region holds one bit. Where
success is rare, the indicator is nearly constant, and the coordinates still vary in every row.

Source: ours; Du et al. (2026), Sec. 2.1 (the region as a polytope).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.spaces.polytope import Polytope

PARALLEL = 1e-9


@dataclass(frozen=True)
class FaceCoordinates:
    """Linear coordinates of the outcomes, and the faces of the region in them.

    Attributes:
        basis: B, (q, |Y|).
        normals: n_k, (l, q).
        offsets: d_k, (l,).
    """

    basis: Tensor
    normals: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, region: Polytope) -> "FaceCoordinates":
        """The coordinates of a region."""
        lengths = region.normals.norm(dim=-1)
        units = region.normals / lengths.unsqueeze(-1)
        kept: list[int] = []
        for face, unit in enumerate(units):
            if all(float((units[other] @ unit).abs()) < 1 - PARALLEL for other in kept):
                kept.append(face)
        if len(kept) > units.shape[1]:
            basis = torch.eye(units.shape[1], dtype=units.dtype)
            return cls(basis, units, region.offsets / lengths)
        basis = units[kept]
        along = units @ basis.mT
        own = along.abs().argmax(-1, keepdim=True)
        normals = torch.zeros_like(along).scatter(-1, own, along.gather(-1, own).sign())
        return cls(basis, normals, region.offsets / lengths)

    @property
    def count(self) -> int:
        """q, the number of coordinates."""
        return len(self.basis)

    def of_outcomes(self, outcomes: Tensor) -> Tensor:
        """t = B y, (..., |Y|) -> (..., q)."""
        return outcomes @ self.basis.to(outcomes).mT

    def desired(self, coordinates: Tensor) -> Tensor:
        """Whether points lie in the region, (..., q) -> (...) bool."""
        inside = None
        for normal, offset in zip(self.normals.tolist(), self.offsets.tolist(), strict=True):
            used = [(place, weight) for place, weight in enumerate(normal) if weight]
            if len(used) == 1:
                ((place, weight),) = used
                bound, own = offset / weight, coordinates[..., place]
                within = own <= bound if weight > 0 else own >= bound
            else:
                within = coordinates @ coordinates.new_tensor(normal) <= offset
            inside = within if inside is None else inside.logical_and_(within)
        if inside is None:
            return torch.ones(coordinates.shape[:-1], dtype=torch.bool, device=coordinates.device)
        return inside
