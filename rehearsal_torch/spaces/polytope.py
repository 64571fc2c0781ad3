"""Polytopes: desired regions of outcomes, and the Probit surrogate of their indicator.

An outcome y is desired when it lies in a convex polytope S = {y : M y <= d}. Its indicator has no useful
gradient, so searches maximise the Probit surrogate

    w(y) = prod_k Phi(eta (d_k - m_k' y)),

which tends to the indicator as eta grows, at rate sqrt(ln eta) / eta. The meaning of eta depends on units:
with standardised outcomes z = (y - location) / scale and rows of unit length, eta (d_k - m_k' z) is eta times
the distance to the face in standard deviations.

Where M y <= d has no solution, `contradiction` says which inequalities contradict each other. The smallest t
for which M y <= d + t has a solution is positive then, and the faces with positive multipliers in that linear
program contradict each other by Farkas' lemma. The multipliers are a vertex of the dual program, so that no
smaller set of faces has multipliers that cancel: they are an irreducible infeasible subset, at most |Y| + 1.

Source: Du et al. (2026), Eq. (2)-(3) and Thm. 1; Qin et al. (2023), Eq. (3); Gleeson and Ryan (1990),
Identifying minimally infeasible subsystems of inequalities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog

from rehearsal_torch.spaces.box import as_tensor, numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

# States of scipy's linear programs. None is infeasible, since a radius may be negative.
OPTIMAL, UNBOUNDED = 0, 3
# The largest violation that counts as rounding, in units of faces of length one.
SMALL = 1e-9


class EmptyRegionError(ValueError):
    """No point satisfies all faces; `reason` says which contradict each other, and what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no outcome satisfies all faces of the desired region: {reason}")
        self.reason = reason


@dataclass(frozen=True, init=False)
class Polytope:
    """The region {y : M y <= d} of |Y| named outcomes in their units: M (l, |Y|) and d (l,), as arrays `rows`
    and `limits`. A ValueError for other shapes, non-finite numbers, a zero normal or an empty region.
    """

    names: tuple[str, ...]
    rows: np.ndarray
    limits: np.ndarray

    def __init__(
        self, names: Sequence[str], normals: ArrayLike | Tensor, offsets: ArrayLike | Tensor
    ) -> None:
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "rows", numbers(normals))
        object.__setattr__(self, "limits", numbers(offsets))
        faces = len(self.limits) if self.limits.ndim == 1 else -1
        if faces < 1 or self.rows.shape != (faces, len(self.names)):
            raise ValueError(
                f"expected normals (l, {len(self.names)}) and offsets (l,) with at least one face; got "
                f"{self.rows.shape}, {self.limits.shape}"
            )
        if not (np.isfinite(self.rows).all() and np.isfinite(self.limits).all()):
            raise ValueError("expected finite normals and offsets: leave out a side that is unbounded")
        if (np.linalg.norm(self.rows, axis=-1) == 0).any():
            raise ValueError("a face with a normal of zero does not constrain the outcomes: leave it out")
        _, radius = self._inscribed_ball
        if radius < -SMALL:
            inequalities = contradiction(self.names, self.rows, self.limits)
            culprits = f"{inequalities} contradict each other; " if inequalities else ""
            raise EmptyRegionError(f"{culprits}check signs and bounds")

    @classmethod
    def of(cls, bounds: Mapping[str, Sequence[float | None]]) -> Polytope:
        """An axis-aligned region: outcome to (lower, upper), None (or an infinity) where a side is open."""
        names, normals, offsets = tuple(bounds), [], []
        for column, (name, (lower, upper)) in enumerate(bounds.items()):
            if any(bound is not None and math.isnan(bound) for bound in (lower, upper)):
                raise ValueError(f"{name}: expected numbers or None; got [{lower}, {upper}]")
            if lower is not None and upper is not None and lower > upper:
                raise ValueError(f"{name}: expected lower <= upper; got [{lower}, {upper}]: swap them")
            for sign, bound in ((1.0, upper), (-1.0, lower)):
                if bound is not None and math.isfinite(bound):
                    normals.append([sign if index == column else 0.0 for index in range(len(names))])
                    offsets.append(sign * float(bound))
        if not offsets:
            raise ValueError(f"expected at least one bound for {list(names)}; all are open")
        return cls(names, normals, offsets)

    @cached_property
    def normals(self) -> Tensor:
        """M, (l, |Y|)."""
        return as_tensor(self.rows)

    @cached_property
    def offsets(self) -> Tensor:
        """d, (l,)."""
        return as_tensor(self.limits)

    def slack(self, outcomes: Tensor) -> Tensor:
        """Slack of each face, negative where violated, (..., |Y|) -> (..., l)."""
        return self.offsets.to(outcomes) - outcomes @ self.normals.to(outcomes).mT

    def contains(self, outcomes: Tensor) -> Tensor:
        """Whether outcomes are desired, (..., |Y|) -> (...) bool."""
        return (self.slack(outcomes) >= 0).all(-1)

    def slacks(self, outcomes: np.ndarray) -> np.ndarray:
        """`slack` of arrays of NumPy."""
        slacks: np.ndarray = self.limits - outcomes @ self.rows.T
        return slacks

    def holds(self, outcomes: np.ndarray) -> np.ndarray:
        """`contains` of arrays of NumPy."""
        return np.asarray((self.slacks(outcomes) >= 0).all(-1))

    def desirability(self, outcomes: Tensor, sharpness: float | Tensor) -> Tensor:
        """The Probit surrogate w, (..., |Y|) -> (...); `sharpness` is eta, per unit of M y."""
        import torch

        return torch.special.log_ndtr(sharpness * self.slack(outcomes)).sum(-1).exp()

    def standardised(self, location: Tensor, scale: Tensor) -> Polytope:
        """The same region in z = (y - location) / scale, each (|Y|,), with normals of length one."""
        normals, offsets = self.normals * scale, self.offsets - self.normals @ location.to(self.normals)
        length = normals.norm(dim=-1)
        return Polytope(self.names, normals / length.unsqueeze(-1), offsets / length)

    def chebyshev(self) -> tuple[Tensor, float]:
        """Centre (|Y|,) and radius of the largest inscribed ball, by linear programming: max r with m_k' o +
        r |m_k| <= d_k; infinite, and the centre of a ball of radius one, if every radius fits.
        """
        centre, radius = self._inscribed_ball
        return as_tensor(centre), radius

    @cached_property
    def _inscribed_ball(self) -> tuple[np.ndarray, float]:
        # Of length one: beside a long normal, the solver would take a short one for nothing.
        normals, offsets = _of_length_one(self.rows, self.limits)
        faces = np.hstack([normals, np.ones((len(normals), 1))])
        width, free = normals.shape[1], (None, None)
        goal = np.append(np.zeros(width), -1.0)
        program = linprog(goal, A_ub=faces, b_ub=offsets, bounds=free, method="highs")
        if program.status not in (OPTIMAL, UNBOUNDED):
            raise ValueError(
                "the linear program of the desired region cannot be solved: expected weights of about the "
                "same size; use other units"
            )
        if program.status == UNBOUNDED:
            inner = linprog(np.zeros(width), A_ub=normals, b_ub=offsets - 1.0, bounds=free, method="highs")
            return inner.x, float("inf")
        return program.x[:-1], float(program.x[-1])


def _of_length_one(normals: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.linalg.norm(normals, axis=-1)
    return normals / lengths[:, None], offsets / lengths


def contradiction(names: Sequence[str], normals: np.ndarray, offsets: np.ndarray) -> str:
    """The inequalities of one irreducible subset of faces (l, |Y|), (l,) that contradict each other, such as
    ``sales >= 20 and sales <= 10``; empty if the system has a solution, or only just none. No normal is zero.
    """
    faces = _irreducible(*_of_length_one(normals, offsets))
    return " and ".join(face_text(names, normals[face], float(offsets[face])) for face in faces)


def face_text(names: Sequence[str], normal: np.ndarray, offset: float) -> str:
    """One face m'y <= d as an inequality, with one variable alone on its side."""
    terms = [(name, weight) for name, weight in zip(names, normal.tolist(), strict=True) if weight]
    if len(terms) == 1:
        ((name, weight),) = terms
        return f"{name} {'<=' if weight > 0 else '>='} {offset / weight + 0.0:.6g}"
    texts = [
        f"{'-' if weight < 0 else '+' if index else ''}{' ' if index else ''}"
        f"{'' if abs(weight) == 1 else f'{abs(weight):.6g}*'}{name}"
        for index, (name, weight) in enumerate(terms)
    ]
    return f"{' '.join(texts)} <= {offset:.6g}"


def _irreducible(faces: np.ndarray, bounds: np.ndarray) -> list[int]:
    """The faces of an irreducible infeasible subset, in their order; empty if the system has a solution."""
    # The smallest t >= 0 for which M y <= d + t has a solution, and the multipliers of the faces.
    count, width = faces.shape
    rows = np.hstack([faces, -np.ones((count, 1))])
    sides = [*[(None, None)] * width, (0.0, None)]
    program = linprog(np.append(np.zeros(width), 1.0), A_ub=rows, b_ub=bounds, bounds=sides, method="highs")
    if not program.success or program.fun <= SMALL:
        return []
    return [face for face, multiplier in enumerate(-program.ineqlin.marginals) if multiplier > SMALL]
