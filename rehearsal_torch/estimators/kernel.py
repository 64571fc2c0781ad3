"""Gaussian-process regressions, N of them at once.

Regression i has rows (w, y) with inputs in the unit cube, and

    y = m + f(w) + e,    f ~ GP(0, k),    k(w, w') = c(sum_d (w_d - w'_d)^2 / l_d^2),    e ~ N(0, v r),

where c is one of `stationary_kernel`'s, and r is 1, or known for each row. With K = k(W, W) + v diag(r) and
the mean at its best, m = 1'K^-1 y / 1'K^-1 1,

    log p(y | l, v) = -(y - m)' a / 2 - log |K| / 2 - n log(2 pi) / 2,       a = K^-1 (y - m),

and with G = K^-1 - a a' the slope of -log p in any parameter is tr(G dK) / 2. The priors are l_d ~
LogNormal(sqrt 2 + log(p) / 2, sqrt 3) and v ~ LogNormal(-4, 1), with l >= .025 and v >= 1e-4: long
length-scales in many dimensions.

Regressions differ in rows and inputs. Rows that one of them leaves out are independent of all others and
stand at the mean, inputs that it does not have do not vary: neither moves its evidence. A regression without
inputs is a mean and a variance.

Source: Rasmussen and Williams (2006), Eq. 2.30, 5.8-5.9, and 5.10-5.12 (leave-one-out); priors: Hvarfner et
al. (2024).

Stationary kernels of one scaled distance: how fast a function may turn.

With s = sum_d (w_d - w'_d)^2 / l_d^2,

    rbf       exp(-s / 2)                                    infinitely smooth
    matern52  (1 + r + r^2 / 3) exp(-r),    r = sqrt(5 s)    twice differentiable
    matern32  (1 + r) exp(-r),              r = sqrt(3 s)    once: a kink is nearly allowed

and -2 dk/ds, which times (w_d - w'_d)^2 / l_d^2 is dk / d log l_d: exp(-s / 2), 5/3 (1 + r) exp(-r), 3
exp(-r).

A function with a kink, such as a distance from a centre, is smoothed by the first: far from the kink it looks
smooth, the length-scale becomes long, and no number of rows brings the kink back. A smooth function, on the
other hand, is learnt from far fewer rows by a kernel that knows it to be smooth. Which it is can be left to
the rows: a function is taken for smooth until the others foresee each row from the rest better, by a factor
of 20 in all. That density speaks up sooner than the evidence, which counts as well how the first few rows are
foreseen from none.

Source: Rasmussen and Williams (2006), Eq. 4.9, 4.17 and Sec. 5.4.2 (leave-one-out densities); Kass and
Raftery (1995), Sec. 3.2 (20 to 1).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
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


def squared_distance_derivative(squares: Tensor, kind: int) -> Tensor:
    """-2 dk/ds, any shape."""
    if kind == 0:
        return squares.mul(-0.5).exp()
    root = (squares.clamp_min(NEAR) * (5.0 if kind == 1 else 3.0)).sqrt()
    return (5 / 3 * (1 + root) if kind == 1 else torch.full_like(root, 3.0)) * (-root).exp()


def blended(squares: Tensor, kinds: Tensor | None, of: Callable[[Tensor, int], Tensor]) -> Tensor:
    """`of` the squares (b, m, n), each by its own kernel: kinds (b), places in `KINDS`; None for the
    first.
    """
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


LENGTH_FLOOR, NOISE_FLOOR = 0.025, 1e-4
LENGTH_SPREAD, NOISE_MEAN, NOISE_SPREAD = math.sqrt(3.0), -4.0, 1.0
JITTERS = (0.0, 1e-8, 1e-6, 1e-4)


@dataclass(frozen=True)
class Rows:
    """What N regressions are fitted to; b stands for any leading dimensions, N among them.

    Attributes:
        inputs: (b, n, p), zero in columns that a regression does not have.
        targets: (b, n), standardised.
        kept: (b, n), false where a regression leaves the row out.
        used: (b, p), false where a regression does not have the input.
        ratios: (b, n), the rows' noise variances, relative to the regression's.
        kinds: (b,), each regression's kernel as a place in `stationary_kernel.KINDS`; None for the first.
    """

    inputs: Tensor
    targets: Tensor
    kept: Tensor
    used: Tensor
    ratios: Tensor
    kinds: Tensor | None = None

    def only(self, places: Tensor) -> "Rows":
        """Some of the regressions, by place along the first dimension."""
        kinds = None if self.kinds is None else self.kinds[places]
        return Rows(
            self.inputs[places],
            self.targets[places],
            self.kept[places],
            self.used[places],
            self.ratios[places],
            kinds,
        )

    def aimed(self, targets: Tensor, ratios: Tensor | None = None) -> "Rows":
        """The same rows with other targets, and other relative noise variances."""
        return replace(self, targets=targets * self.kept, ratios=self.ratios if ratios is None else ratios)

    @property
    def counts(self) -> Tensor:
        """Rows that each regression keeps, (b,)."""
        return self.kept.sum(-1)


def length_mean(used: Tensor) -> Tensor:
    """The mean of log l a priori, (b, 1), for inputs (b, p) bool."""
    return math.sqrt(2.0) + 0.5 * used.sum(-1, keepdim=True).clamp_min(1).double().log()


def apart(left: Tensor, right: Tensor, log_lengths: Tensor) -> Tensor:
    """Scaled squared distances of inputs (b, m, p) and (b, n, p), (b, m, n), for log l (b, p)."""
    scale = (-log_lengths).exp().unsqueeze(-2)
    left, right = left * scale, right * scale
    squares = left.square().sum(-1, keepdim=True) + right.square().sum(-1).unsqueeze(-2) - 2 * left @ right.mT
    return squares.clamp_min(0)


def log_prior(log_lengths: Tensor, log_noises: Tensor, used: Tensor) -> Tensor:
    """Log densities of l and v, (b,)."""
    lengths = (log_lengths - length_mean(used)) / LENGTH_SPREAD
    noises = (log_noises - NOISE_MEAN) / NOISE_SPREAD
    each = -0.5 * lengths.square() - log_lengths - math.log(LENGTH_SPREAD * math.sqrt(2 * math.pi))
    own = -0.5 * noises.square() - log_noises - math.log(NOISE_SPREAD * math.sqrt(2 * math.pi))
    return (each * used).sum(-1) + own * used.any(-1)


@dataclass(frozen=True)
class Factors:
    """What predictions need, computed once.

    Attributes:
        mean: m, (b,).
        weights: a = K^-1 (y - m), (b, n), zero where a row is left out.
        root: The lower Cholesky factor of K, (b, n, n).
        kernel: k(W, W) between rows that are kept, (b, n, n).
        derivative: -2 dk/ds there, (b, n, n).
    """

    mean: Tensor
    weights: Tensor
    root: Tensor
    kernel: Tensor
    derivative: Tensor

    def log_evidence(self, rows: Rows) -> Tensor:
        """log p(y | l, v), (b,)."""
        centred = (rows.targets - self.mean.unsqueeze(-1)) * rows.kept
        fit = (centred * self.weights).sum(-1)
        volume = 2 * (self.root.diagonal(dim1=-2, dim2=-1).log() * rows.kept).sum(-1)
        return -0.5 * (fit + volume + rows.counts * math.log(2 * math.pi))

    def inverse(self) -> Tensor:
        """K^-1, (b, n, n)."""
        return torch.cholesky_inverse(self.root)

    def left_out(self) -> tuple[Tensor, Tensor]:
        """Leave-one-out residuals and predictive variances, noise included, (b, n) each: a_i / [K^-1]_ii and
        1 / [K^-1]_ii.
        """
        precision = self.inverse().diagonal(dim1=-2, dim2=-1)
        return self.weights / precision, 1 / precision


def factors(rows: Rows, log_lengths: Tensor, log_noises: Tensor) -> Factors:
    """Factors of N regressions under their hyper-parameters; a matrix that is not positive is tried again
    with jitter.

    Raises:
        ValueError: if no jitter helps; the message says which regression.
    """
    both = rows.kept.unsqueeze(-1) & rows.kept.unsqueeze(-2) & rows.used.any(-1)[..., None, None]
    squares = apart(rows.inputs, rows.inputs, log_lengths)
    kernel = blended(squares, rows.kinds, correlation) * both
    smooth = rows.kinds is None or not bool(rows.kinds.any())
    derivative = kernel if smooth else blended(squares, rows.kinds, squared_distance_derivative) * both
    noise = torch.where(
        rows.kept, log_noises.exp().unsqueeze(-1) * rows.ratios, 1 - kernel.diagonal(dim1=-2, dim2=-1)
    )
    root = lower_root(kernel + torch.diag_embed(noise))
    ones = rows.kept.to(kernel).unsqueeze(-1)
    solved = torch.cholesky_solve(torch.cat([ones, rows.targets.unsqueeze(-1)], -1), root)
    total = (ones * solved).sum(-2)
    mean = total[..., 1] / total[..., 0]
    return Factors(
        mean, (solved[..., 1] - mean.unsqueeze(-1) * solved[..., 0]) * rows.kept, root, kernel, derivative
    )


def lower_root(matrices: Tensor) -> Tensor:
    """Lower Cholesky factors, (b, n, n); with the least jitter that makes each matrix positive.

    Raises:
        ValueError: if none does.
    """
    for jitter in JITTERS:
        shifted = (
            matrices
            if jitter == 0
            else matrices
            + jitter * torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
        )
        root, wrong = torch.linalg.cholesky_ex(shifted)
        if not bool(wrong.any()):
            return root
    places = wrong.nonzero().tolist()
    raise ValueError(
        f"expected positive covariance matrices; those of regressions {places} are not, even with jitter "
        f"{JITTERS[-1]:g}: "
        "look for infinite or absurdly large values in their columns"
    )


def evidence_gradient(
    rows: Rows, found: Factors, log_lengths: Tensor, log_noises: Tensor
) -> tuple[Tensor, Tensor]:
    """Slopes of -log p(y | l, v) in log l (b, p) and log v (b,)."""
    heavy = found.inverse() - found.weights.unsqueeze(-1) * found.weights.unsqueeze(-2)
    paired = heavy * found.derivative
    # sum_ij M_ij (w_i - w_j)^2 / 2 without the differences.
    distant = (paired.sum(-1, keepdim=True) * rows.inputs.square()).sum(-2) - (
        rows.inputs * (paired @ rows.inputs)
    ).sum(-2)
    noise = 0.5 * log_noises.exp() * (heavy.diagonal(dim1=-2, dim2=-1) * rows.ratios * rows.kept).sum(-1)
    return distant * (-2 * log_lengths).exp(), noise
