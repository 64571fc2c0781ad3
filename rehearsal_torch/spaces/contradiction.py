"""Which inequalities contradict each other, where a system M y <= d has no solution.

The smallest t for which M y <= d + t has a solution is positive then, and the faces with positive multipliers
in that linear program contradict each other by Farkas' lemma. The multipliers are a vertex of the dual
program, so that no smaller set of faces has multipliers that cancel: these faces are an irreducible
infeasible subset, of at most |Y| + 1.

Source: Gleeson and Ryan (1990), Identifying minimally infeasible subsystems of inequalities.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from torch import Tensor

SMALL = 1e-9


def contradiction(names: Sequence[str], normals: Tensor, offsets: Tensor) -> str:
    """The inequalities that contradict each other, such as ``sales >= 20 and sales <= 10``.

    Args:
        names: The |Y| variables.
        normals: The faces' normals M, (l, |Y|), none of them zero.
        offsets: The faces' offsets d, (l,).

    Returns:
        The inequalities of one irreducible subset; empty if the system has a solution, or only just none.
    """
    lengths = normals.norm(dim=-1, keepdim=True)
    faces, bounds = (normals / lengths).numpy(), (offsets / lengths[:, 0]).numpy()
    kept = _irreducible(faces, bounds)
    return " and ".join(face_text(names, normals[place], float(offsets[place])) for place in kept)


def face_text(names: Sequence[str], normal: Tensor, offset: float) -> str:
    """One face m'y <= d as an inequality, with one variable alone on its side.

    Args:
        names: The |Y| variables.
        normal: m, (|Y|,).
        offset: d.
    """
    used = [(name, weight) for name, weight in zip(names, normal.tolist(), strict=True) if weight]
    if len(used) == 1:
        ((name, weight),) = used
        return f"{name} {'<=' if weight > 0 else '>='} {offset / weight + 0.0:.6g}"
    parts = [
        f"{'-' if weight < 0 else '+' if place else ''}{' ' if place else ''}"
        f"{'' if abs(weight) == 1 else f'{abs(weight):.6g}*'}{name}"
        for place, (name, weight) in enumerate(used)
    ]
    return f"{' '.join(parts)} <= {offset:.6g}"


def _irreducible(faces: np.ndarray, bounds: np.ndarray) -> list[int]:
    """The faces of an irreducible infeasible subset, in their order; empty if the system has a solution."""
    least, multipliers = _excess(faces, bounds)
    if least <= SMALL:
        return []
    return [place for place, each in enumerate(multipliers) if each > SMALL]


def _excess(faces: np.ndarray, bounds: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest t >= 0 for which M y <= d + t has a solution, and the multipliers of the faces."""
    count, width = faces.shape
    rows = np.hstack([faces, -np.ones((count, 1))])
    sides = [*[(None, None)] * width, (0.0, None)]
    found = linprog(np.append(np.zeros(width), 1.0), A_ub=rows, b_ub=bounds, bounds=sides, method="highs")
    if not found.success:
        return 0.0, np.zeros(count)
    return float(found.fun), -np.asarray(found.ineqlin.marginals)
