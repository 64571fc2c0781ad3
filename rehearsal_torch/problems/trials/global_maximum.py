"""Global maximisation of cheap functions on a box: the oracles of simulated worlds.

`best_action` maximises a world's expected reward,

    a* = argmax_a E[r | a],        a in a box,

where the maximiser has no closed form: it evaluates given starts and Sobol points, then runs L-BFGS-B with
exact gradients from the best of them. The search uses no seed, so the result is the same in every process. It
is a lower bound of the maximum; worlds document what else is known of it.

`highest` maximises B functions of k <= 3 variables in one batch, one function per context, by a dense grid
and then finer grids, of half the width each, around its four best local maxima: points that none of their
neighbours exceeds. The only assumption is that local maxima are wider than the spacing of the first grid.

Source: Byrd et al. (1995) (L-BFGS-B); the grid search is exhaustive search, ours.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import max_pool1d, max_pool2d, max_pool3d

from rehearsal_torch.spaces.box import Box


def best_action(
    value: Callable[[Tensor], Tensor],
    box: Box,
    starts: Tensor | None = None,
    *,
    spread: int = 2048,
    refined: int = 12,
    steps: int = 200,
) -> tuple[Tensor, float]:
    """The best action found, (k,), and its value, (n, k) -> (n,): from `starts`, (m, k), and `spread` Sobol
    points, of which the `refined` best start a local search of at most `steps` iterations.
    """
    points = box.sobol(spread, seed=1)
    points = points if starts is None else torch.cat([starts, points])
    with torch.no_grad():
        values = value(points)
    ends: list[tuple[Tensor, float]] = []
    for index in values.topk(min(refined, len(points))).indices:
        ends.append((points[index], float(values[index])))
        ends.append(_local_maximum(value, box, points[index], steps))
    return max(ends, key=lambda pair: pair[1])


def _local_maximum(
    value: Callable[[Tensor], Tensor], box: Box, start: Tensor, steps: int
) -> tuple[Tensor, float]:
    """The end of an L-BFGS-B ascent from `start` (k,), and its value."""
    width, scale = box.width, 1.0

    def loss(unit: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        with torch.enable_grad():
            point = torch.from_numpy(unit).requires_grad_()
            negative = -value((box.lower + point * width)[None])[0] / scale
            (derivative,) = torch.autograd.grad(negative, point)
        return float(negative.detach()), derivative.numpy()

    unit = ((start - box.lower) / width).numpy()
    scale = max(1e-6, abs(loss(unit)[0]))  # stopping rules are relative to the size of the value
    ends, options = [(0.0, 1.0)] * len(unit), {"maxiter": steps, "ftol": 1e-14, "gtol": 1e-10}
    result = minimize(loss, unit, jac=True, method="L-BFGS-B", bounds=ends, options=options)
    return box.project(box.lower + torch.from_numpy(result.x) * width), -float(result.fun) * scale


FIRST = {1: 201, 2: 41, 3: 15}
NEXT = {1: 9, 2: 7, 3: 5}
HILLS, FINER = 4, 8  # Local maxima of the first grid that are refined, and the number of finer grids.
POOL = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def grid(width: int, points: int) -> Tensor:
    """The product grid on [0, 1]^width, (points^width, width)."""
    axis = torch.linspace(0, 1, points, dtype=torch.float64)
    return torch.stack(torch.meshgrid(*[axis] * width, indexing="ij"), -1).reshape(-1, width)


def highest(value: Callable[[Tensor], Tensor], box: Box, batch: int) -> tuple[Tensor, Tensor]:
    """The best points (B, k), and values (B,), of B functions (n, B, k) -> (n, B) of 1 to 3 variables."""
    width = len(box.names)
    if width not in FIRST:
        expected = "expected one to three altered variables"
        raise ValueError(f"{expected}; got {list(box.names)}: a grid over more is not feasible")
    first = FIRST[width]
    points = box.lower + grid(width, first) * box.width
    values = value(points.unsqueeze(1).expand(-1, batch, -1))
    cube = values.mT.reshape(batch, 1, *[first] * width)
    nearby = POOL[width](cube, 3, stride=1, padding=1).reshape(batch, -1).mT
    peaks = torch.where(values == nearby, values, values - 2.0 * values.abs() - 1.0)
    top = peaks.topk(min(HILLS, len(points)), dim=0)
    best, best_values = points[top.indices], values.gather(0, top.indices)
    offsets, step = 2 * grid(width, NEXT[width]) - 1, 1.2 * box.width / (first - 1)
    for _ in range(FINER):
        nearby = box.project(best + (offsets * step).reshape(-1, 1, 1, width))
        values = value(nearby.reshape(-1, batch, width)).reshape(nearby.shape[:-1])
        local = values.max(dim=0)
        chosen = nearby.gather(0, local.indices.unsqueeze(0).unsqueeze(-1).expand(1, *best.shape)).squeeze(0)
        better = local.values > best_values
        best = torch.where(better.unsqueeze(-1), chosen, best)
        best_values = torch.where(better, local.values, best_values)
        step = step / 2
    winner = best_values.argmax(0)
    rows = torch.arange(batch)
    return best[winner, rows], best_values[winner, rows]
