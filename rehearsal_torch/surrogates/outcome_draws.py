"""Posterior predictive draws of the outcomes in one case, after an alteration or without one.

Each is a function or parameters drawn from the posterior, plus observed noise, so that they express
epistemic uncertainty and noise. Their share in the region estimates the probability of a desired outcome.

They are draws of coordinates t = B y in which the faces of the region are few linear bounds. The region is {y
: m_k'y <= d_k, k = 1..l}, and its slack a linear function of y, so that few regressions suffice:

    d_k - m_k'y = d_k - n_k't.

The rows of B are the distinct directions of the normals, of length one and up to their sign, if there are no
more of them than outcomes: each face then bounds one coordinate. Otherwise (a polygon in two outcomes) B is
the identity. A coordinate holds how far each row is from the bound, where the indicator of the region holds
one bit: where success is rare, the indicator is nearly constant, and the coordinates still vary in every row.

The draws of a fitted model are the same for every question, since their seed is part of the model:
`KeptDraws` caches those used last, up to a number of cells, for as long as the model's tensors are unchanged.

Source: Gelman et al. (2013), Sec. 7.1 (the posterior predictive distribution); Du et al. (2026), Sec. 2.1
(the region as a polytope).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.seeding import generator
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse

PARALLEL = 1e-9


@dataclass(frozen=True)
class FaceCoordinates:
    """B (q, |Y|), and the faces in coordinates t = B y: n_k (l, q) and d_k (l,)."""

    basis: Tensor
    normals: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, region: Polytope) -> "FaceCoordinates":
        """The coordinates of a region."""
        lengths = region.normals.norm(dim=-1)
        units = region.normals / lengths.unsqueeze(-1)
        distinct: list[int] = []
        for face, unit in enumerate(units):
            if all(float((units[row] @ unit).abs()) < 1 - PARALLEL for row in distinct):
                distinct.append(face)
        if len(distinct) > units.shape[1]:
            basis = torch.eye(units.shape[1], dtype=units.dtype)
            return cls(basis, units, region.offsets / lengths)
        basis = units[distinct]
        along = units @ basis.mT
        column = along.abs().argmax(-1, keepdim=True)
        normals = torch.zeros_like(along).scatter(-1, column, along.gather(-1, column).sign())
        return cls(basis, normals, region.offsets / lengths)

    def between(self, lattice: Tensor) -> "FaceCoordinates":
        """Faces with bounds half a step beyond the last desired lattice value; steps and origins (q, 2)."""
        step, origin = (self.normals.abs() @ column for column in lattice.to(self.normals).T)
        shift = origin * self.normals.sum(-1)
        last = ((self.offsets - shift) / torch.where(step > 0, step, 1.0) + 1e-6).floor()
        single = (self.normals != 0).sum(-1) == 1
        offsets = torch.where(single & (step > 0), shift + (last + 0.5) * step, self.offsets)
        return replace(self, offsets=offsets)

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
            entries = [(column, weight) for column, weight in enumerate(normal) if weight]
            if len(entries) == 1:
                ((column, weight),) = entries
                bound, coordinate = offset / weight, coordinates[..., column]
                within = coordinate <= bound if weight > 0 else coordinate >= bound
            else:
                within = coordinates @ coordinates.new_tensor(normal) <= offset
            inside = within if inside is None else inside.logical_and_(within)
        if inside is None:
            return torch.ones(coordinates.shape[:-1], dtype=torch.bool, device=coordinates.device)
        return inside


MODELS, EACH = 64, 128  # models, and draws of the noise of each


@dataclass(frozen=True)
class OutcomeDraws:
    """Draws of the outcomes in one case."""

    values: Tensor  # t, (n, q), in the coordinates' units; on the device of the context
    basis: Tensor  # B, (q, |Y|)

    def bounds(self, region: Polytope) -> list[tuple[float, float]]:
        """The desired region's bounds of each coordinate; faces of several coordinates are ignored."""
        limits = [(-torch.inf, torch.inf) for _ in self.basis]
        lengths = region.normals.norm(dim=-1)
        for normal, offset in zip(region.normals / lengths[:, None], region.offsets / lengths, strict=True):
            for index, row in enumerate(self.basis.to(normal)):
                along = float(normal @ row) / float(row @ row)
                if bool((normal - along * row).abs().amax() > 1e-9):
                    continue
                bound, (lower, upper) = float(offset) / along, limits[index]
                limits[index] = (lower, min(upper, bound)) if along > 0 else (max(lower, bound), upper)
        return limits

    def share(self, region: Polytope) -> float:
        """The share of the draws that lie in the desired region."""
        faces = FaceCoordinates.of(region)
        coordinates = self.values
        # Draws of other coordinates than those of the faces are draws of the outcomes themselves.
        if not torch.equal(faces.basis, self.basis.to(faces.basis)):
            coordinates = faces.of_outcomes(self.values @ torch.linalg.inv(self.basis).mT)
        return float(faces.desired(coordinates.to(torch.float64)).to(torch.float64).mean())


def of_response(response: AffineResponse, given: Tensor, action: Tensor) -> OutcomeDraws:
    """Draws of an affine response with normal noise under M models, given context (|X|,) and values (k,)."""
    device, constant = given.device, response.constant
    given, action = given.to(constant.device), action.to(constant.device)
    means = response.base(given.unsqueeze(0)).squeeze(-2) + (response.action @ action)
    # In a common unit: eigenvalues are found to rounding of the largest one.
    unit = response.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0).sqrt()
    unit = torch.where(unit > 0, unit, torch.ones_like(unit)).unsqueeze(-1)
    # The signs of eigenvectors, on which draws depend, are those of the CPU on every device.
    values, vectors = torch.linalg.eigh((response.covariance / (unit * unit.mT)).cpu())
    root = unit * (vectors * values.clamp_min(0).sqrt().unsqueeze(-2)).to(unit.device)
    noise = torch.randn(EACH, *means.shape, dtype=means.dtype, generator=generator(97)).to(means.device)
    draws = means + (root @ noise.unsqueeze(-1)).squeeze(-1)
    basis = torch.eye(draws.shape[-1], dtype=draws.dtype, device=device)
    return OutcomeDraws(draws.reshape(-1, draws.shape[-1]).to(device), basis)


Drawn = TypeVar("Drawn")


class KeptDraws(Generic[Drawn]):
    """A cache of draws with at most `most` cells in total; the oldest are dropped."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, tuple[list[tuple[Tensor, int]], int, Drawn]] = OrderedDict()

    def get(self, key: Hashable, source: Sequence[Tensor], cells: int, make: Callable[[], Drawn]) -> Drawn:
        """The draws of a question, recomputed if source tensors were replaced or changed."""
        if torch.is_inference_mode_enabled() or any(tensor.is_inference() for tensor in source):
            # Tensors of inference mode have no version counter, and no gradient outside.
            return make()
        entry = self._kept.pop(key, None)
        if entry is None or not _unchanged(entry[0], source):
            entry = [(tensor, tensor._version) for tensor in source], cells, make()
        if cells <= self.most:
            self._kept[key] = entry
        while sum(size for _, size, _ in self._kept.values()) > self.most:
            self._kept.popitem(last=False)
        return entry[2]

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type["KeptDraws[Drawn]"], tuple[int]]:
        return type(self), (self.most,)


def _unchanged(stored: Sequence[tuple[Tensor, int]], source: Sequence[Tensor]) -> bool:
    return len(stored) == len(source) and all(
        old is new and new._version == version for (old, version), new in zip(stored, source, strict=True)
    )
