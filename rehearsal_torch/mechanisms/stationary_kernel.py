"""Stationary kernels of one scaled distance: how fast a function may turn.

With s = sum_d (w_d - w'_d)^2 / l_d^2,

    rbf       exp(-s / 2)                                    infinitely smooth
    matern52  (1 + r + r^2 / 3) exp(-r),    r = sqrt(5 s)    twice differentiable
    matern32  (1 + r) exp(-r),              r = sqrt(3 s)    once: a kink is nearly allowed

and -2 dk/ds, which times (w_d - w'_d)^2 / l_d^2 is dk / d log l_d: exp(-s / 2), 5/3 (1 + r) exp(-r), 3 exp(-r).

A function with a kink, such as a distance from a centre, is smoothed by the first: far from the kink it looks smooth, the length-scale
becomes long, and no number of rows brings the kink back. A smooth function, on the other hand, is learnt from far fewer rows by a kernel
that knows it to be smooth. Which it is can be left to the rows: a function is taken for smooth until the others foresee each row from
the rest better, by a factor of 20 in all. That density speaks up sooner than the evidence, which counts as well how the first few rows
are foreseen from none.

Source: Rasmussen and Williams (2006), Eq. 4.9, 4.17 and Sec. 5.4.2 (leave-one-out densities); Kass and Raftery (1995), Sec. 3.2 (20 to 1).
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Kernel = Literal["rbf", "matern52", "matern32", "learnt"]
KINDS = ("rbf", "matern52", "matern32")
# Between which the rows choose, and by how many nats a rougher one has to be ahead.
CHOICE, AHEAD = (0, 2), math.log(20)
# Where the root of a distance has a slope still.
NEAR = 1e-24


def correlation(squares: Tensor, kind: int) -> Tensor:
    """k of scaled squared distances, any shape; `kind` is a place in `KINDS`."""
    if kind == 0:
        return squares.mul(-0.5).exp()
    root = (squares.clamp_min(NEAR) * (5.0 if kind == 1 else 3.0)).sqrt()
    return (1 + root + root.square() / 3 if kind == 1 else 1 + root) * (-root).exp()


def steepness(squares: Tensor, kind: int) -> Tensor:
    """-2 dk/ds, any shape."""
    if kind == 0:
        return squares.mul(-0.5).exp()
    root = (squares.clamp_min(NEAR) * (5.0 if kind == 1 else 3.0)).sqrt()
    return (5 / 3 * (1 + root) if kind == 1 else torch.full_like(root, 3.0)) * (-root).exp()


def blended(squares: Tensor, kinds: Tensor | None, of: Callable[[Tensor, int], Tensor]) -> Tensor:
    """`of` the squares (b, m, n), each by its own kernel: kinds (b), places in `KINDS`; None for the first."""
    present = [0] if kinds is None else sorted(set(kinds.flatten().tolist()))
    found = of(squares, present[0])
    for kind in present[1:]:
        assert kinds is not None
        found = torch.where((kinds == kind)[..., None, None], of(squares, kind), found)
    return found


def places(kernel: Kernel) -> tuple[int, ...]:
    """The kernels to choose among.

    Raises:
        ValueError: if the name is unknown.
    """
    if kernel == "learnt":
        return CHOICE
    if kernel not in KINDS:
        raise ValueError(f"expected a kernel of {[*KINDS, 'learnt']}; got {kernel!r}")
    return (KINDS.index(kernel),)
