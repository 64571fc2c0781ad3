"""The largest value of a cheap function on a box: a dense grid, then finer ones around its best points.

Every context has its own function of k <= 3 altered variables, and all of them are evaluated together. The grid finds
the hills, the points that none of their neighbours exceeds; the `hills` best of them are followed by grids of a width that shrinks
by `shrink`. Nothing is assumed of the function but that its hills are wider than the first grid's spacing.

Source: exhaustive search; ours.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import max_pool1d, max_pool2d, max_pool3d

from rehearsal_torch.spaces.box import Box

FIRST = {1: 201, 2: 41, 3: 15}
NEXT = {1: 9, 2: 7, 3: 5}
POOL = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def grid(width: int, points: int) -> Tensor:
    """The product grid on [0, 1]^width, (points^width, width)."""
    axis = torch.linspace(0, 1, points, dtype=torch.float64)
    return torch.stack(torch.meshgrid(*[axis] * width, indexing="ij"), -1).reshape(-1, width)


def highest(value: Callable[[Tensor], Tensor], box: Box, batch: int, *, hills: int = 4, rounds: int = 8, shrink: float = 0.5) -> tuple[Tensor, Tensor]:
    """The best point of a box for each of B functions.

    Args:
        value: (n, B, k) -> (n, B).
        box: Of k variables.
        batch: B.
        hills: How many of the grid's hills are followed.
        rounds: How many finer grids.
        shrink: By how much each is narrower than the one before.

    Returns:
        Points (B, k) and values (B,).

    Raises:
        ValueError: if there are more than three variables.
    """
    width = len(box.names)
    if width not in FIRST:
        raise ValueError(f"expected one to three altered variables; got {list(box.names)}: a grid over more is not feasible")
    first = FIRST[width]
    points = box.lower + grid(width, first) * box.width
    values = value(points.unsqueeze(1).expand(-1, batch, -1))
    around = POOL[width](values.mT.reshape(batch, 1, *[first] * width), 3, stride=1, padding=1).reshape(batch, -1).mT
    top = torch.where(values == around, values, values - 2.0 * values.abs() - 1.0).topk(min(hills, len(points)), dim=0)
    best, reached = points[top.indices], values.gather(0, top.indices)
    offsets, step = 2 * grid(width, NEXT[width]) - 1, 1.2 * box.width / (first - 1)
    for _ in range(rounds):
        around = box.project(best + (offsets * step).reshape(-1, 1, 1, width))
        values = value(around.reshape(-1, batch, width)).reshape(around.shape[:-1])
        new = values.max(dim=0)
        picked = around.gather(0, new.indices.unsqueeze(0).unsqueeze(-1).expand(1, *best.shape)).squeeze(0)
        better = new.values > reached
        best, reached = torch.where(better.unsqueeze(-1), picked, best), torch.where(better, new.values, reached)
        step = step * shrink
    which = reached.argmax(0)
    rows = torch.arange(batch)
    return best[which, rows], reached[which, rows]
