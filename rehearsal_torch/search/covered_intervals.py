"""Where enough intervals overlap.

Scenario i is desired on an interval [l_i, r_i] of the altered variable. The z that lie in at least m of n intervals form a union of
closed intervals. Walking over the ends in order, beginnings before endings where they coincide, the count before the i-th left end is
i - #{r < l_i}, and before the j-th right end #{l <= r_j} - j: a piece begins at the left ends that raise the count from m - 1 to m and
ends at the right ends that lower it from m to m - 1. Both come out in order, as many of the one as of the other, from two sorts and two
merges: O(n log n).

Source: Qin et al. (2023), App. B.1, Alg. 3, which walks one by one.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Cover:
    """Intervals, as their ends in order.

    Attributes:
        begins: (n,), ascending.
        ends: (n,), ascending; not each the partner of the beginning at its place.
    """

    begins: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, left: Tensor, right: Tensor) -> "Cover":
        """Intervals [left, right], (n,) each; one with left > right is empty and left out."""
        # On the host: for some ten thousand numbers NumPy's sort is several times as fast as torch's.
        begins, ends = left.detach().cpu().numpy(), right.detach().cpu().numpy()
        real = begins <= ends
        return cls(np.sort(begins[real]), np.sort(ends[real]))

    def before(self) -> np.ndarray:
        """In how many intervals the points just below each beginning lie; among equal beginnings one after the other, (n,)."""
        return np.arange(len(self.begins)) - np.searchsorted(self.ends, self.begins, side="left")

    def at_least(self, count: int) -> Tensor:
        """The points that lie in at least `count` intervals; below 1 is read as 1.

        Returns:
            Disjoint closed intervals in ascending order, (p, 2); a piece may be a point.
        """
        need = max(count, 1)
        if len(self.begins) < need:
            return torch.empty(0, 2, dtype=torch.float64)
        opened = self.before() == need - 1
        closed = np.searchsorted(self.begins, self.ends, side="right") - np.arange(len(self.ends)) == need
        return torch.from_numpy(np.stack([self.begins[opened], self.ends[closed]], -1))

    def deepest(self) -> tuple[float, int]:
        """The middle of the first piece that lies in most intervals, and in how many; nan and 0 where all are empty."""
        if not len(self.begins):
            return float("nan"), 0
        before = self.before()
        place = int(before.argmax())
        last = self.ends[np.searchsorted(self.ends, self.begins[place], side="left")]
        return float(self.begins[place] + last) / 2, int(before[place]) + 1


def meet(one: Tensor, other: Tensor) -> Tensor:
    """What two unions of disjoint intervals share: (p, 2), (q, 2) -> (s, 2)."""
    both = torch.stack([torch.maximum(one[:, None, 0], other[None, :, 0]), torch.minimum(one[:, None, 1], other[None, :, 1])], -1).reshape(-1, 2)
    kept = both[both[:, 0] <= both[:, 1]]
    return kept[kept[:, 0].argsort()]


def spread(pieces: Tensor, count: int) -> Tensor:
    """`count` points over a union of intervals, (p, 2) -> (count,): the ends first, then points all over it, each halving what is left.

    Where there are more ends than points, the ends of the longest pieces; of no intervals no points.
    """
    if not len(pieces):
        return pieces.new_empty(0)
    length = pieces[:, 1] - pieces[:, 0]
    kept = length.argsort(descending=True, stable=True)[: max(count // 2, 1)]
    ends = pieces[kept].reshape(-1)[:count]
    left = count - len(ends)
    if not left:
        return ends
    total = length.cumsum(0)
    at = torch.quasirandom.SobolEngine(1).fast_forward(1).draw(left, dtype=torch.float64).squeeze(-1).to(pieces) * total[-1]
    which = torch.searchsorted(total, at).clamp_max(len(pieces) - 1)
    inside = torch.minimum(pieces[which, 1] - total[which] + at, pieces[which, 1])
    return torch.cat([ends, torch.maximum(inside, pieces[which, 0])])
