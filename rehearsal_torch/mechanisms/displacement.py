"""Interval arithmetic for displacements of a path under changed actions.

Given a path c_0 ... c_{T-1} under its own actions o, and further changes at some steps, the displacement
y_q = x_q - c_q of the changed path obeys, with o_q kept or replaced by a,

    y_{q+1} = F_q(c_q + y_q, o_q) - F_q(c_q, o_q),
    y_{q+1} = F_q(c_q + y_q, a) - F_q(c_q, a) + d_q(a),    d_q(a) = F_q(c_q, a) - F_q(c_q, o_q).

An `Enclosure` of a step maps intervals of y_q to intervals of y_{q+1}. Where the action changes to one that
is not known yet, it takes the hull of d_q(a) over the allowed actions, which is exact at the path's own
states, and encloses only the rest. Used by `search.sequences.step_tree`.

Source: Moore (1966) (interval arithmetic with a mean-value form).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Every step widens intervals by this share of the states' size: far more than the rounding of float64.
MARGIN = 1e-12


@dataclass(frozen=True)
class Intervals:
    """Displacements of n paths for each of M members, (M, n, D) each."""

    centre: Tensor
    radius: Tensor
    # The g columns of an affine form, whose sizes add up to the radius, and the contribution of each to the
    # sum of a linear reward over the steps so far, (M, n, g).
    columns: Tensor | None = None
    gained: Tensor | None = None

    @property
    def size(self) -> Tensor:
        """The largest displacement of each variable, (M, n, D)."""
        return self.centre.abs() + self.radius

    def rows(self, rows: Tensor) -> "Intervals":
        """The intervals of the paths with some indices."""
        return self._map(lambda part: part[:, rows])

    def padded(self, count: int) -> "Intervals":
        """These intervals and those of `count` further paths without displacement."""
        return self._map(lambda part: torch.cat([part, part.new_zeros(len(part), count, *part.shape[2:])], 1))

    def _map(self, change: Callable[[Tensor], Tensor]) -> "Intervals":
        columns, gained = (None if part is None else change(part) for part in (self.columns, self.gained))
        return Intervals(change(self.centre), change(self.radius), columns, gained)

    def put(self, rows: Tensor, others: "Intervals") -> None:
        """Sets the intervals of the paths with some indices, in place."""
        for target, source in zip(vars(self).values(), vars(others).values(), strict=True):
            if target is not None:
                target[:, rows] = source

    def ends(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The lower and upper ends around states (n, M D), (n, M D) each."""
        centre, radius = (part.transpose(0, 1).flatten(1) for part in (self.centre, self.radius))
        return states + (centre - radius), states + (centre + radius)


def nowhere(members: int, rows: int, width: int, like: Tensor) -> Intervals:
    """Intervals without displacement."""
    zero = like.new_zeros(members, rows, width)
    return Intervals(zero, zero)


def enclosed(lower: Tensor, upper: Tensor, members: int) -> Intervals:
    """Intervals between given ends, (n, M D) each."""
    ends = [end.unflatten(-1, (members, -1)).transpose(0, 1) for end in (lower, upper)]
    return Intervals((ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2)


class Enclosure(ABC):
    """One step of displacements of paths with states `here` and next states `ahead`, (n, M D) each."""

    @abstractmethod
    def kept(self, before: Intervals, here: Tensor, ahead: Tensor) -> Intervals:
        """The intervals of the next step under the observed action."""

    @abstractmethod
    def changed(self, before: Intervals, here: Tensor, ahead: Tensor, hull: Intervals) -> Intervals:
        """The intervals of the next step under any allowed action, whose effects d lie in `hull`."""
