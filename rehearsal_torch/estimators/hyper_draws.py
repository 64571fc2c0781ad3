"""Posterior draws of the hyper-parameters of Gaussian-process regressions, by importance resampling.

A point estimate treats length-scales, noise and signal as known: after a few rows a regression is then far
too certain between and beyond them. Here

    y ~ N(m 1, s^2 K),    K = k(W, W) + v diag(r),    s^2 ~ InverseGamma(A, A),    m flat,

with independent normal densities of t = (log l, log v). Compared with the priors of the optimum
(`estimators.gp_kernel`), length-scales are shorter by a factor of exp(`SHORTER`), and the noise is less
certain:

    log l     long length-scales make a regression find little between few rows. Under the longer prior,
              intervals of the recommendation after the start design held the truth in .87 of 60 networks by
              seed, and in .90 to .93 under shorter ones.
    log v     N(-4, 1) makes noise of the signal's size so improbable that rows of two or three inputs are
              interpolated: of 40 campaigns of mostly noise intervals held in 32, and in 37 under N(-3, 1.5).

Given t, s^2 and m are integrated in closed form: with n rows, q = (y - m)'K^-1 (y - m) at the optimal m, and
c = 1'K^-1 1,

    log p(y | t) = -log |K| / 2 - log c / 2 - (A + (n - 1) / 2) log(A + q / 2) + constant,
    s^2 | t, y ~ InverseGamma(A + (n - 1) / 2, A + q / 2).

The posterior of t is sampled by importance resampling. Half of the M proposed points come from the prior,
which covers the posterior of few rows, and half from a multivariate t distribution around the optimum with
the curvature there, which covers that of many; each has the weight p(y | t) p(t) / (p(t) / 2 + q(t) / 2). H
of the weighted points are drawn systematically, so that a point of weight w comes w H times, up to one. The
curvature is that of central differences of the evidence's gradient. Many rows cost n^3 a point and leave a
narrow posterior: there are fewer points then, down to `FEWEST`. Used by `surrogates.network`.

Source: Rubin (1988) (importance resampling); Hesterberg (1995) (defensive mixtures); Kitagawa (1996)
(systematic resampling); Rasmussen and Williams (2006), Sec. 5.2 and Eq. 5.9; O'Hagan and Forster (2004), Ch.
11 (the conjugate variance).
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rehearsal_torch.estimators.gp_kernel import (
    LENGTH_FLOOR,
    LENGTH_SPREAD,
    NOISE_FLOOR,
    Rows,
    evidence_gradient,
    factors,
    length_mean,
)
from rehearsal_torch.estimators.gp_posterior import LONGEST, NOISIEST, HyperParameters
from rehearsal_torch.seeding import generator, numpy_generator

# The fewest and the most proposed points, and floating-point operations to spend on those of a regression.
FEWEST, MOST, OPERATIONS = 8, 512, 5e7
# How much shorter length-scales are expected to be than by the prior of the optimum, in logarithms.
SHORTER = 1.5
# Mean and standard deviation of log v.
NOISE_LOG, NOISE_WIDTH = -3.0, 1.5
# Of the t distribution; the step of the differences; entries of covariance matrices computed together.
FREEDOM, STEP, TOGETHER = 5, 1e-2, 2**23
# A, of the signal's variance.
SIGNAL = 1.5


@dataclass(frozen=True)
class HyperDraws:
    """H draws for each of N regressions."""

    log_lengths: Tensor  # (N, H, p)
    log_noises: Tensor  # log v, (N, H)
    scales: Tensor  # s, (N, H)

    def limited(self, variances: Tensor) -> "HyperDraws":
        """A copy with the noises' variances v s^2 at least as known, (N,)."""
        least = variances.log().unsqueeze(-1) - 2 * self.scales.log()
        return replace(self, log_noises=self.log_noises.maximum(least))

    def filled(self, places: Tensor, other: "HyperDraws") -> "HyperDraws":
        """A copy with the draws of a subset of the regressions replaced."""
        columns = {name: values.clone() for name, values in vars(self).items()}
        for name, values in columns.items():
            values[places] = getattr(other, name)
        return HyperDraws(**columns)


def hyper_draws(
    rows: Rows, optimum: HyperParameters, count: int, seed: int, free_noise: bool = True
) -> HyperDraws:
    """H draws for each regression, given `Rows.few`; the optimum without inputs, or for noise not free."""
    rows = rows.few()
    regressions, width = rows.used.shape
    size = int(min(MOST, max(FEWEST, OPERATIONS / max(1, rows.inputs.shape[-2]) ** 3))) // 2 * 2
    free = torch.cat([rows.used, rows.used.any(-1, keepdim=True) & free_noise], -1)
    lengths = (length_mean(rows.used) - SHORTER).expand(-1, width)
    centre = torch.cat([lengths, torch.full_like(lengths[:, :1], NOISE_LOG)], -1)
    spread = rows.inputs.new_tensor([LENGTH_SPREAD] * width + [NOISE_WIDTH])
    mode = torch.cat([optimum.log_lengths, optimum.log_noises.unsqueeze(-1)], -1)
    root = _laplace_root(rows, mode, spread, free)

    draws = generator(seed)
    normal = torch.randn(regressions, size, width + 1, generator=draws, dtype=torch.float64).to(mode)
    chi2 = torch.randn(size // 2, FREEDOM, generator=draws, dtype=torch.float64).square().mean(-1).to(mode)
    near_mode = mode.unsqueeze(1) + (normal[:, : size // 2] @ root.mT) / chi2.sqrt().unsqueeze(-1)
    points = torch.cat([near_mode, centre.unsqueeze(1) + spread * normal[:, size // 2 :]], 1)
    points = torch.where(free.unsqueeze(1), points, mode.unsqueeze(1))

    prior = _log_normal((points - centre.unsqueeze(1)) / spread, spread.log(), free)
    proposed = torch.logaddexp(prior, _log_student(points - mode.unsqueeze(1), root, free))
    # A point beyond the bounds has no weight, and its covariance may have no root.
    low, high = _limits(points)
    within = ((points >= low - 1e-9) & (points <= high) | ~free.unsqueeze(1)).all(-1)
    points = torch.where(free.unsqueeze(1), points.clamp(low, high), points)
    evidence, squares = _evidence(rows, points)
    weights = (evidence + prior - proposed).where(within, -math.inf)
    probabilities = weights.softmax(-1)
    # If no point was within bounds, all are clamped to them and weigh the same.
    probabilities = torch.where(probabilities.isfinite(), probabilities, 1 / size)
    levels = (torch.arange(count, dtype=torch.float64) + 0.5).to(probabilities) / count
    levels = levels.expand(regressions, -1).contiguous()
    indices = torch.searchsorted(probabilities.cumsum(-1).contiguous(), levels).clamp_max(size - 1)
    # Shuffled for each regression, so that draws of several are independent.
    order = torch.stack([torch.randperm(count, generator=draws) for _ in range(regressions)]).to(indices)
    indices = indices.gather(1, order)
    drawn = points.gather(1, indices.unsqueeze(-1).expand(-1, -1, width + 1))
    degrees = SIGNAL + 0.5 * (rows.counts - 1).double().unsqueeze(-1).expand(-1, count)
    gamma = torch.from_numpy(numpy_generator(seed).standard_gamma(degrees.cpu().numpy())).to(mode)
    variances = (SIGNAL + 0.5 * squares.gather(1, indices)) / gamma
    return HyperDraws(drawn[..., :width], drawn[..., width], variances.sqrt())


def repeated(
    rows: Rows,  # noqa: ARG001
    optimum: HyperParameters,
    count: int,
    seed: int,  # noqa: ARG001
    free_noise: bool = True,  # noqa: ARG001
) -> HyperDraws:
    """The optimum and the targets' variance H times, in place of `hyper_draws`."""
    lengths, noises = optimum.log_lengths.unsqueeze(1), optimum.log_noises.unsqueeze(1)
    noises = noises.expand(-1, count).clone()
    return HyperDraws(lengths.repeat(1, count, 1), noises, torch.ones_like(noises))


def _laplace_root(rows: Rows, optimum: Tensor, spread: Tensor, free: Tensor) -> Tensor:
    """The root of the inverse curvature at the optimum, (N, p + 1, p + 1), symmetric and so unique."""
    regressions, size = optimum.shape
    steps = STEP * torch.cat([torch.eye(size), -torch.eye(size)]).to(optimum)
    points = optimum.unsqueeze(1) + steps
    repeated = rows.only(torch.arange(regressions, device=optimum.device).repeat_interleave(2 * size))
    flat = points.flatten(0, 1)
    slopes = []
    for part, t in zip(_batches(repeated), flat.split(_batch_size(rows)), strict=True):
        lengths, noises = t[:, :-1], t[:, -1]
        lengthwise, noisewise = evidence_gradient(part, factors(part, lengths, noises), lengths, noises)
        slopes.append(torch.cat([lengthwise, noisewise.unsqueeze(-1)], -1))
    gradients = torch.cat(slopes).reshape(regressions, 2, size, size)
    curvature = (gradients[:, 0] - gradients[:, 1]) / (2 * STEP)
    free_pairs = free.unsqueeze(-1) & free.unsqueeze(-2)
    prior = torch.where(free, spread.square().reciprocal(), 1.0)
    curvature = torch.where(free_pairs, (curvature + curvature.mT) / 2, 0.0) + torch.diag_embed(prior)
    values, vectors = torch.linalg.eigh(curvature)
    # The evidence may be convex away from its optimum; the prior's curvature is the least there is.
    deviations = values.clamp_min(float(prior.min())).rsqrt()
    return (vectors * deviations.unsqueeze(-2)) @ vectors.mT


def _evidence(rows: Rows, points: Tensor) -> tuple[Tensor, Tensor]:
    """log p(y | t), up to a constant, and q at points (N, M, p + 1), (N, M) each."""
    repeated = rows.only(torch.arange(len(points), device=points.device).repeat_interleave(points.shape[1]))
    values = []
    for part, t in zip(_batches(repeated), points.flatten(0, 1).split(_batch_size(rows)), strict=True):
        factored = factors(part, t[:, :-1], t[:, -1])
        square = ((part.targets - factored.mean.unsqueeze(-1)) * part.kept * factored.weights).sum(-1)
        ones = torch.linalg.solve_triangular(factored.root, part.kept.to(t).unsqueeze(-1), upper=False)
        volume = 2 * (factored.root.diagonal(dim1=-2, dim2=-1).log() * part.kept).sum(-1)
        volume = volume + ones.square().sum((-2, -1)).log()
        fit = (2 * SIGNAL + part.counts - 1) * (SIGNAL + 0.5 * square).log()
        values.append(torch.stack([-0.5 * (volume + fit), square], -1))
    evidence, squares = torch.cat(values).unbind(-1)
    return evidence.reshape(points.shape[:-1]), squares.reshape(points.shape[:-1])


def _batch_size(rows: Rows) -> int:
    return max(1, TOGETHER // max(1, rows.inputs.shape[-2]) ** 2)


def _batches(rows: Rows) -> list[Rows]:
    return [rows.only(part) for part in torch.arange(len(rows.inputs)).split(_batch_size(rows))]


def _limits(like: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds of hyper-parameters, (p + 1,) each, like points (..., p + 1)."""
    width = like.shape[-1] - 1
    low = like.new_tensor([math.log(LENGTH_FLOOR)] * width + [math.log(NOISE_FLOOR)])
    return low, like.new_tensor([math.log(LONGEST)] * width + [math.log(NOISIEST)])


def _log_normal(deviations: Tensor, log_scale: Tensor, free: Tensor) -> Tensor:
    """Log densities of normal deviations (N, M, d), up to a constant, (N, M)."""
    return ((-0.5 * deviations.square() - log_scale) * free.unsqueeze(1)).sum(-1)


def _log_student(deviations: Tensor, root: Tensor, free: Tensor) -> Tensor:
    """Log densities of the t distribution with scale root root', up to the constant of `_log_normal`."""
    count = free.sum(-1, keepdim=True).double()
    inverse = torch.linalg.inv(root)
    squares = ((deviations * free.unsqueeze(1)) @ inverse.mT).square().sum(-1)
    volume = torch.linalg.slogdet(root)[1].unsqueeze(-1)
    freedom = float(FREEDOM)
    constant = (
        torch.lgamma((count + freedom) / 2) - math.lgamma(freedom / 2) - count / 2 * math.log(freedom / 2)
    )
    return constant - volume - (count + freedom) / 2 * torch.log1p(squares / freedom)
