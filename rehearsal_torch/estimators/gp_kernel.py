"""Gaussian-process regressions, N in one batch: kernels, priors, factors and the gradient of the evidence.

Regression i has rows (w, y) with inputs in the unit cube, and

    y = m + f(w) + e,    f ~ GP(0, k),    k(w, w') = c(sum_d (w_d - w'_d)^2 / l_d^2),    e ~ N(0, v r),

where r is 1, or known by row. With K = k(W, W) + v diag(r) and the optimal mean m = 1'K^-1 y / 1'K^-1 1,

    log p(y | l, v) = -(y - m)' a / 2 - log |K| / 2 - n log(2 pi) / 2,       a = K^-1 (y - m),

and with G = K^-1 - a a' the derivative of -log p in any parameter is tr(G dK) / 2. The priors are l_d ~
LogNormal(sqrt 2 + log(p) / 2, sqrt 3), long in many dimensions, and v ~ LogNormal(-4, 1), with l >= .025 and
v >= 1e-4. Regressions differ in rows and inputs. Rows that a regression leaves out are independent of all
others and lie at the mean, and missing inputs are constant: neither changes its evidence. A regression
without inputs is a mean and a variance.

The stationary kernels c, as functions of s = sum_d (w_d - w'_d)^2 / l_d^2, differ in smoothness,

    rbf       exp(-s / 2)                                    infinitely differentiable
    matern52  (1 + r + r^2 / 3) exp(-r),    r = sqrt(5 s)    twice differentiable
    matern32  (1 + r) exp(-r),              r = sqrt(3 s)    once differentiable: approximates kinks

and -2 dk/ds, which times (w_d - w'_d)^2 / l_d^2 is dk / d log l_d, is exp(-s / 2), 5/3 (1 + r) exp(-r), 3
exp(-r). The rbf kernel smooths a kink, such as that of a distance from a centre: far from the kink the
function looks smooth, the length-scale becomes long, and no number of rows recovers the kink; but a smooth
function needs far fewer rows with it. With "learnt" the smoother kernel is kept unless the rougher one has a
leave-one-out predictive density higher by a factor of 20 in total, a criterion that reacts earlier than the
evidence, which also counts how the first few rows are predicted from none.

Source: Rasmussen and Williams (2006), Eq. 2.30, 4.9, 4.17, 5.8-5.9, and Sec. 5.4.2, Eq. 5.10-5.12
(leave-one-out); priors: Hvarfner et al. (2024); Kass and Raftery (1995), Sec. 3.2 (20 to 1).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

Kernel = Literal["rbf", "matern52", "matern32", "learnt"]
KINDS = ("rbf", "matern52", "matern32")
# The candidates of "learnt", and the margin in nats by which the rougher one must be better.
CHOICE, AHEAD = (0, 2), math.log(20)


def correlation(squares: Tensor, kind: int) -> Tensor:
    """k of scaled squared distances, any shape, once differentiable; `kind` is an index into `KINDS`."""
    return with_derivative(squares, kind)[0]


class _WithDerivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, squares: Tensor, kind: int) -> tuple[Tensor, Tensor]:
        kernel, derivative = with_derivative(squares.detach(), kind)
        derivative = derivative.clone() if derivative is kernel else derivative
        ctx.save_for_backward(derivative)
        ctx.mark_non_differentiable(derivative)
        return kernel, derivative

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, None]:
        return upstream * ctx.saved_tensors[0].mul(-0.5), None


def with_derivative(squares: Tensor, kind: int) -> tuple[Tensor, Tensor]:
    """k and, without a gradient, -2 dk/ds of scaled squared distances, any shape; one tensor for rbf."""
    if squares.requires_grad:
        values: tuple[Tensor, Tensor] = _WithDerivative.apply(squares, kind)
        return values
    if kind == 0:
        kernel = squares.mul(-0.5).exp_()
        return kernel, kernel
    root = squares.mul(5.0 if kind == 1 else 3.0).clamp_min_(0).sqrt_()  # Rounding leaves squares below 0
    decay = (-root).exp_()
    linear = (1 + root).mul_(decay)
    if kind == 1:
        return root.square_().div_(3).mul_(decay).add_(linear), linear.mul_(5 / 3)
    return linear, decay.mul_(3)


def blended(squares: Tensor, kinds: Tensor | None) -> tuple[Tensor, Tensor]:
    """`with_derivative` of (..., N, m, n), each with its regression's kernel, (..., N); None: the first."""
    present = [0] if kinds is None else sorted(set(kinds.flatten().tolist()))
    if len(present) == 1:
        return with_derivative(squares, present[0])
    assert kinds is not None
    kind_of = kinds.expand(squares.shape[:-2])
    kernel, derivative = torch.empty_like(squares), torch.empty_like(squares)
    for kind in present:
        mask = kind_of == kind
        kernel[mask], derivative[mask] = with_derivative(squares[mask], kind)
    return kernel, derivative


def places(kernel: Kernel) -> tuple[int, ...]:
    """Indices of the candidate kernels; ValueError if the name is unknown."""
    if kernel == "learnt":
        return CHOICE
    if kernel not in KINDS:
        raise ValueError(f"expected a kernel of {[*KINDS, 'learnt']}; got {kernel!r}")
    return (KINDS.index(kernel),)


LENGTH_FLOOR, NOISE_FLOOR = 0.025, 1e-4
LENGTH_SPREAD, NOISE_MEAN, NOISE_SPREAD = math.sqrt(3.0), -4.0, 1.0
JITTERS = (0.0, 1e-8, 1e-6, 1e-4)
# The most rows of an exact regression (`estimators.inducing_points`).
MANY = 512


@dataclass(frozen=True)
class Rows:
    """Training rows of N regressions; b stands for any leading dimensions, N among them."""

    inputs: Tensor  # (b, n, p), zero in columns that a regression does not have
    targets: Tensor  # (b, n), standardised
    kept: Tensor  # (b, n), false where a regression leaves the row out
    used: Tensor  # (b, p), false where a regression does not have the input
    ratios: Tensor  # (b, n), the rows' noise variances, relative to the regression's
    kinds: Tensor | None = None  # (b,), each regression's kernel as an index into `KINDS`; None for the first

    def only(self, places: Tensor) -> "Rows":
        """A subset of the regressions, by index along the first dimension."""
        return Rows(**{name: value[places] for name, value in vars(self).items() if value is not None})

    def thinned(self, most: int) -> "Rows":
        """At most `most` rows, evenly spaced; all, if that left a regression less than a quarter of them."""
        count, device = self.inputs.shape[-2], self.inputs.device
        if count <= most:
            return self
        rows = torch.linspace(0, count - 1, most, dtype=torch.float64, device=device).round().long()
        columns = {name: getattr(self, name)[..., rows] for name in ("targets", "kept", "ratios")}
        few = replace(self, inputs=self.inputs[..., rows, :], **columns)
        return self if bool((few.counts < self.counts.clamp(max=most // 4)).any()) else few

    def few(self, most: int = MANY) -> "Rows":
        """At most `most` of the rows that each regression keeps, evenly spaced: enough to fit to."""
        if self.inputs.shape[-2] <= most:
            return self
        order = (~self.kept).byte().argsort(dim=-1, stable=True)
        steps, last = torch.arange(most, device=order.device), self.counts.unsqueeze(-1) - 1
        rows = torch.where(last < most, steps, (steps * last.double() / (most - 1)).round().long())
        rows = order.gather(-1, rows)
        columns = {name: getattr(self, name).gather(-1, rows) for name in ("targets", "kept", "ratios")}
        return replace(self, inputs=self.inputs.take_along_dim(rows.unsqueeze(-1), -2), **columns)

    @property
    def counts(self) -> Tensor:
        """Number of rows that each regression keeps, (b,)."""
        return self.kept.sum(-1)


def length_mean(used: Tensor) -> Tensor:
    """The prior mean of log l, (b, 1), for inputs (b, p) bool."""
    return math.sqrt(2.0) + 0.5 * used.sum(-1, keepdim=True).clamp_min(1).double().log()


def apart(left: Tensor, right: Tensor, log_lengths: Tensor) -> Tensor:
    """Scaled squared distances of inputs (b, m, p) and (b, n, p), (b, m, n), for log l (b, p)."""
    scale = (-log_lengths).exp().unsqueeze(-2)
    left, right = left * scale, right * scale
    norms = left.square().sum(-1, keepdim=True) + right.square().sum(-1).unsqueeze(-2)
    products = left @ right.mT
    if products.requires_grad:
        return (norms - 2 * products).clamp_min(0)
    return norms.sub_(products, alpha=2).clamp_(min=0)


def log_prior(log_lengths: Tensor, log_noises: Tensor, used: Tensor) -> Tensor:
    """Log prior densities of l and v, (b,)."""
    lengths = (log_lengths - length_mean(used)) / LENGTH_SPREAD
    noises = (log_noises - NOISE_MEAN) / NOISE_SPREAD
    length_terms = -0.5 * lengths.square() - log_lengths - math.log(LENGTH_SPREAD * math.sqrt(2 * math.pi))
    noise_terms = -0.5 * noises.square() - log_noises - math.log(NOISE_SPREAD * math.sqrt(2 * math.pi))
    return (length_terms * used).sum(-1) + noise_terms * used.any(-1)


@dataclass(frozen=True)
class Learnt(ABC):
    """The solved systems of N regressions, given their hyper-parameters: means, weights and variances."""

    mean: Tensor  # m, (b,)
    weights: Tensor  # a = K^-1 (y - m), (b, n), zero where a row is left out
    noises: Tensor  # The rows' noise variances, (b, n)

    @abstractmethod
    def precision(self) -> Tensor:
        """The diagonal of K^-1, (b, n)."""

    @abstractmethod
    def basis(self, rows: Rows, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """A regression's points Z (c, p), weights z (c,) and a root R (c, c), such that mu(w) = m + k(w, Z) z
        and tau(w)^2 = k(w, w) - |R k(Z, w)|^2.
        """

    def left_out(self) -> tuple[Tensor, Tensor]:
        """Leave-one-out residuals a_i / [K^-1]_ii and variances 1 / [K^-1]_ii with noise, (b, n) each."""
        precision = self.precision()
        return self.weights / precision, 1 / precision

    def in_sample(self) -> tuple[Tensor, Tensor]:
        """Residuals y - mu and the variances of mu at the rows, (b, n) each."""
        variances = self.noises - self.noises.square() * self.precision()
        return self.noises * self.weights, variances.clamp_min(0)


@dataclass(frozen=True)
class Factors(Learnt):
    """The exact systems, by Cholesky factors of K."""

    root: Tensor  # The lower Cholesky factor of K, (b, n, n)
    kernel: Tensor  # k(W, W) between kept rows, (b, n, n)
    derivative: Tensor  # -2 dk/ds there, (b, n, n)

    def log_evidence(self, rows: Rows) -> Tensor:
        """log p(y | l, v), (b,)."""
        centred = (rows.targets - self.mean.unsqueeze(-1)) * rows.kept
        fit = (centred * self.weights).sum(-1)
        volume = 2 * (self.root.diagonal(dim1=-2, dim2=-1).log() * rows.kept).sum(-1)
        return -0.5 * (fit + volume + rows.counts * math.log(2 * math.pi))

    def inverse(self) -> Tensor:
        """K^-1, (b, n, n)."""
        return torch.cholesky_inverse(self.root)

    def precision(self) -> Tensor:
        """The diagonal of K^-1, (b, n)."""
        return self.inverse().diagonal(dim1=-2, dim2=-1)

    def basis(self, rows: Rows, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """The rows, their weights, and the inverse of the root."""
        kept = rows.kept[index]
        root = inverse_root(self.root[index][kept][:, kept])
        return rows.inputs[index][kept], self.weights[index][kept], root


def factors(rows: Rows, log_lengths: Tensor, log_noises: Tensor) -> Factors:
    """Factors of N regressions given their hyper-parameters; ValueError as of `lower_root`."""
    return factored(rows, *kernels(rows, apart(rows.inputs, rows.inputs, log_lengths)), log_noises)


def kernels(rows: Rows, squares: Tensor) -> tuple[Tensor, Tensor]:
    """k and -2 dk/ds between rows whose scaled squared distances are (b, n, n); 0 where a row is left out."""
    kernel, derivative = blended(squares, rows.kinds)
    has_inputs = rows.used.any(-1)
    if bool(rows.kept.all()) and bool(has_inputs.all()):
        return kernel, derivative
    mask = rows.kept.unsqueeze(-1) & rows.kept.unsqueeze(-2) & has_inputs[..., None, None]
    masked = kernel * mask
    return masked, masked if derivative is kernel else derivative * mask


def factored(rows: Rows, kernel: Tensor, derivative: Tensor, log_noises: Tensor) -> Factors:
    """Factors of N regressions given `kernels` and their noises log v (b,); ValueError as of `lower_root`."""
    noise = torch.where(
        rows.kept, log_noises.exp().unsqueeze(-1) * rows.ratios, 1 - kernel.diagonal(dim1=-2, dim2=-1)
    )
    matrix = kernel.clone()
    matrix.diagonal(dim1=-2, dim2=-1).add_(noise)
    root = lower_root(matrix)
    ones = rows.kept.to(kernel).unsqueeze(-1)
    targets = rows.targets.unsqueeze(-1)
    solved = torch.cholesky_solve(torch.cat(torch.broadcast_tensors(ones, targets), -1), root)
    total = (ones * solved).sum(-2)
    mean = total[..., 1] / total[..., 0]
    weights = (solved[..., 1] - mean.unsqueeze(-1) * solved[..., 0]) * rows.kept
    return Factors(mean, weights, noise, root, kernel, derivative)


def lower_root(matrices: Tensor) -> Tensor:
    """Lower Cholesky factors, (b, n, n), with the smallest jitter that suffices; ValueError if none does."""
    identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    for jitter in JITTERS:
        shifted = matrices if jitter == 0 else matrices + jitter * identity
        root, failed = torch.linalg.cholesky_ex(shifted)
        # CUDA does not report undefined entries (pytorch#64818): they reach the diagonal.
        failed = failed.bool() | ~root.diagonal(dim1=-2, dim2=-1).isfinite().all(-1)
        if not bool(failed.any()):
            return root
    indices = failed.nonzero().tolist()
    raise ValueError(
        f"expected positive definite covariance matrices; those of regressions {indices} are not, even with "
        f"jitter {JITTERS[-1]:g}: look for infinite or extremely large values in their columns"
    )


def inverse_root(roots: Tensor) -> Tensor:
    """The inverses of lower triangular matrices, (..., n, n)."""
    identity = torch.eye(roots.shape[-1], dtype=roots.dtype, device=roots.device)
    return torch.linalg.solve_triangular(roots, identity.expand_as(roots), upper=False)


def evidence_gradient(
    rows: Rows, factored: Factors, log_lengths: Tensor, log_noises: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of -log p(y | l, v) in log l (b, p) and log v (b,)."""
    weighting = torch.baddbmm(
        factored.inverse(), factored.weights.unsqueeze(-1), factored.weights.unsqueeze(-2), alpha=-1
    )
    weighted = weighting * factored.derivative
    # sum_ij M_ij (w_i - w_j)^2 / 2 without the differences.
    length_terms = (weighted.sum(-1, keepdim=True) * rows.inputs.square()).sum(-2) - (
        rows.inputs * (weighted @ rows.inputs)
    ).sum(-2)
    noise = 0.5 * log_noises.exp() * (weighting.diagonal(dim1=-2, dim2=-1) * rows.ratios * rows.kept).sum(-1)
    return length_terms * (-2 * log_lengths).exp(), noise
