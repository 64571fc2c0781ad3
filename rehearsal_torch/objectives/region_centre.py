"""Where the middle of a region is.

The Chebyshev centre o of S = {y : M y <= d} is the centre of the largest ball inside,

    max r   subject to   m_k' o + r |m_k| <= d_k,

a linear program. Two cases need more to be said. An open region ({y1 < 5.7, y2 < 100}) holds balls of any radius: on each
side on which an outcome is unbounded in S, S is cut at a range of what was observed (the outer deciles: the extremes grow
with the number of rows), widened until something is left of S. A
region that is longer than wide holds many largest balls: among them the one is taken that keeps farthest from the other
faces, and so on until no choice is left. Faces that are tight for all largest balls are those with a positive multiplier.

Source: Qin et al. (2025), Sec. 4.2 (bounded regions); cut and choice among balls are ours.
"""

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from rehearsal_torch.spaces.polytope import Polytope

WIDER = (0.0, 0.5, 1.0, 3.0, 10.0, 100.0, 1e4, 1e6)


def centre_and_radius(region: Polytope, lowest: Tensor, highest: Tensor) -> tuple[Tensor, float]:
    """The middle of the largest ball in a region, (|Y|,), and its radius.

    Args:
        region: S; an open one is cut at the range.
        lowest: The lower ends of the range, (|Y|,), in the region's units.
        highest: The upper ends.

    Raises:
        ValueError: if the region lies farther than a million ranges away from everything observed.
    """
    normals, offsets = region.normals.numpy(), region.offsets.numpy()
    width = normals.shape[1]
    open_sides = [
        sign * np.eye(width)[place] for place in range(width) for sign in (1.0, -1.0) if _largest(sign * np.eye(width)[place], normals, offsets) is None
    ]
    low, high = lowest.detach().cpu().numpy(), highest.detach().cpu().numpy()
    for wider in WIDER if open_sides else (0.0,):
        reach = np.array([side @ (high if side.sum() > 0 else low) + wider * np.abs(side) @ (high - low) for side in open_sides])
        rows = np.vstack([normals, *(side[None] for side in open_sides)])
        bounds = np.concatenate([offsets, reach])
        centre, radius = _inmost(rows, bounds)
        if radius > 1e-9:
            return torch.from_numpy(centre).to(lowest), radius
    raise ValueError(f"the region of {list(region.names)} is flat or lies far from everything observed ({low} to {high}): check its units and bounds")


def _inmost(rows: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """The centre of the largest ball that keeps farthest from the other faces, and its radius; minus infinity where the region is empty."""
    length, width = np.linalg.norm(rows, axis=1), rows.shape[1]
    free, kept, radius, centre = np.ones(len(rows), dtype=bool), np.zeros(len(rows)), -np.inf, np.zeros(width)
    while free.any():
        # Free faces keep the largest common distance, the others the one that they had when they were found tight.
        faces, room = np.hstack([rows, np.where(free, length, 0.0)[:, None]]), bounds - np.where(free, 0.0, length * kept)
        found = linprog(np.append(np.zeros(width), -1.0), A_ub=faces, b_ub=room, bounds=[(None, None)] * (width + 1), method="highs")
        if not found.success:
            break
        centre, radius = found.x[:-1], found.x[-1] if radius == -np.inf else radius
        tight = free & (found.ineqlin.marginals < -1e-9)
        if not tight.any():
            break
        # A hair less, so that rounding leaves something to choose from.
        kept, free = np.where(tight, found.x[-1] - 1e-9 * (1 + abs(found.x[-1])), kept), free & ~tight
    return centre, float(radius)


def _largest(direction: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> np.ndarray | None:
    """The point of {v : rows v <= bounds} farthest in a direction; None where there is no farthest one."""
    found = linprog(-direction, A_ub=rows, b_ub=bounds, bounds=[(None, None)] * rows.shape[1], method="highs")
    return found.x if found.success else None
