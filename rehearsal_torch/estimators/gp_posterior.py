"""Maximum-a-posteriori hyper-parameters of Gaussian-process regressions, and the posterior of one regression.

    max over log l, log v of    log p(y | l, v) + log p(l) + log p(v),

for N regressions in one batch: L-BFGS-B has a memory and a step size for each. Every regression starts from
several points, the hyper-parameters of the last fit among them, and keeps the best result: short
length-scales find oscillating functions, which other starts mistake for noise, and with little noise those
beside a function that explains more. With many rows, all starts but one climb on `SCREENED` evenly spaced
rows first; short length-scales climb on all rows, since few do not show a short wave, and a second kernel
starts from the optimum of the first. Used by `mechanisms.gp_mechanism`.

Six regressions of one to three inputs took .06, .23 and 1.56 s of one thread at n = 20, 100 and 400, with two
kernels and all starts; `fit_gpytorch_mll`, with one kernel and start, .39, .58 and 2.71 s on `SingleTaskGP`s,
and .10, .30 and 4.23 on a batched one. Its optimum was lower by .1 to 90 nats in seven of 36, and higher in
none. On 26 tables of 400 rows no regression lost .01 nats by starting on few rows, in half the time.

The posterior of a regression, with its factors computed once, is

    mu(w) = m + k(w, W) a,        tau(w)^2 = k(w, w) - |L^-1 k(W, w)|^2,        K = L L'.

With n rows the mean costs O(n) per evaluation, the standard deviation O(n^2).

Source: Hvarfner et al. (2024) for the priors; Byrd et al. (1995) for L-BFGS-B; Rasmussen and Williams (2006),
Eq. 2.25-2.26 and Alg. 2.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from numpy.typing import NDArray
from torch import Tensor

from rehearsal_torch.estimators.gp_kernel import (
    LENGTH_FLOOR,
    LENGTH_SPREAD,
    NOISE_FLOOR,
    NOISE_MEAN,
    NOISE_SPREAD,
    Factors,
    Learnt,
    Rows,
    apart,
    correlation,
    evidence_gradient,
    factored,
    factors,
    kernels,
    length_mean,
    log_prior,
)

LONGEST, NOISIEST = 1e4, 1e2
# Starting points: length-scales for one input, and noise variances.
SHORT, LONG, NOISES = (0.03, 0.06, 0.12), (0.25, 0.5, 1.0, 2.0), (0.01, 0.1, 0.5)
# Relative fall of -log p / n at which an ascent ends: thousandths of a nat.
TOLERANCE, ITERATIONS = 1e-6, 200
# The largest number of rows by which starts are compared, and the entries of kernel matrices that are
# factorised together on a CPU: as many as its cache holds.
SCREENED, TOGETHER = 192, 2**18


@dataclass(frozen=True)
class HyperParameters:
    """Hyper-parameters of N regressions."""

    log_lengths: Tensor  # log l, (N, p)
    log_noises: Tensor  # log v, (N,)

    def only(self, places: Tensor | int) -> "HyperParameters":
        """The hyper-parameters of a subset of the regressions."""
        return HyperParameters(self.log_lengths[places], self.log_noises[places])

    def filled(self, places: Tensor, other: "HyperParameters") -> "HyperParameters":
        """A copy with those of a subset of the regressions replaced."""
        lengths, noises = self.log_lengths.clone(), self.log_noises.clone()
        lengths[places], noises[places] = other.log_lengths, other.log_noises
        return HyperParameters(lengths, noises)


def log_posterior(rows: Rows, factored: Factors, hyper: HyperParameters, free_noise: bool = True) -> Tensor:
    """log p(y | l, v) + log p(l) + log p(v), (N,); where the noise is given, log p(v) is a constant."""
    noises = hyper.log_noises if free_noise else torch.full_like(hyper.log_noises, NOISE_MEAN)
    return factored.log_evidence(rows) + log_prior(hyper.log_lengths, noises, rows.used)


def standing(rows: Rows) -> HyperParameters:
    """Default hyper-parameters: the modes of the priors."""
    shortest = math.log(2 * LENGTH_FLOOR)
    lengths = (length_mean(rows.used) - LENGTH_SPREAD**2).clamp_min(shortest).expand(rows.used.shape)
    noise = torch.tensor(NOISE_MEAN - NOISE_SPREAD**2, dtype=torch.float64, device=rows.inputs.device)
    return HyperParameters(lengths.clone(), noise.repeat(len(rows.used)))


def starts(rows: Rows, last: HyperParameters | None = None, exact: bool = False) -> list[HyperParameters]:
    """The last fit's; and by the evidence of few rows, the best of a grid of long lengths, of short lengths
    with little noise if rows are `exact` (others would be interpolated), and of short lengths.
    """
    screened = rows.thinned(SCREENED)
    unit = (0.5 * rows.used.sum(-1, keepdim=True).clamp_min(1).double().log()).expand(rows.used.shape)
    squares = apart(screened.inputs, screened.inputs, unit)
    points = [] if last is None else [last]
    grid, scores = [], []
    for length in SHORT + LONG:
        between = kernels(screened, squares / length**2)
        for noise in NOISES:
            point = HyperParameters(unit + math.log(length), torch.full_like(unit[:, 0], math.log(noise)))
            grid.append(point)
            scores.append(log_posterior(screened, factored(screened, *between, point.log_noises), point))
    short = len(SHORT) * len(NOISES)
    noiseless = [slice(0, short, len(NOISES))] if exact else []
    parts = (slice(short, None), *noiseless, slice(short))
    return points + [highest(grid[part], torch.stack(scores[part])) for part in parts]


def reached(rows: Rows, at: HyperParameters) -> Tensor:
    """The log posterior at hyper-parameters, (N,)."""
    return log_posterior(rows, factors(rows, at.log_lengths, at.log_noises), at)


def highest(points: Sequence[HyperParameters], values: Tensor) -> HyperParameters:
    """For each of N regressions the point with the highest of the values (M, N)."""
    best, index = values.argmax(0), torch.arange(values.shape[1], device=values.device)
    lengths, noises = (
        torch.stack(values_of)[best, index]
        for values_of in zip(*((point.log_lengths, point.log_noises) for point in points), strict=True)
    )
    return HyperParameters(lengths, noises)


def fitted(
    rows: Rows, last: HyperParameters | None = None, near: HyperParameters | None = None, exact: bool = False
) -> HyperParameters:
    """The maximum of the log posterior, from `starts`; `near` is the maximum under another kernel."""
    few = rows.thinned(SCREENED)
    points = starts(few, last, exact)
    if few is rows:
        return maximise(rows, points)
    short = points.pop()
    candidates = [*([] if last is None else [last]), *ascents(few, points)[0]]
    best = highest(candidates, torch.stack([reached(rows, candidate) for candidate in candidates]))
    return maximise(rows, [short if near is None else near, best])


def maximise(rows: Rows, begin: list[HyperParameters], free_noise: bool = True) -> HyperParameters:
    """The best result over starts, whose noise stays unless it is free; ValueError as of `lower_root`."""
    return highest(*ascents(rows, begin, free_noise))


def ascents(
    rows: Rows, begin: list[HyperParameters], free_noise: bool = True
) -> tuple[list[HyperParameters], Tensor]:
    """The optima from M starts, and their log posteriors, (M, N); see `maximise`."""
    count, width = rows.used.shape
    repeated = rows.only(torch.arange(count, device=rows.inputs.device).repeat(len(begin)))
    lengths = torch.cat([start.log_lengths for start in begin])
    given_noises = torch.cat([start.log_noises for start in begin])
    mean, row_counts = length_mean(repeated.used), repeated.counts.double()
    batch_size = max(1, TOGETHER // rows.inputs.shape[1] ** 2) if rows.inputs.is_cpu else len(given_noises)

    def with_gradient(places: Tensor, free: Tensor) -> Tensor:
        part = repeated.only(places)
        at = HyperParameters(free[:, :width], free[:, width] if free_noise else given_noises[places])
        factored = factors(part, at.log_lengths, at.log_noises)
        lengthwise, noisewise = evidence_gradient(part, factored, at.log_lengths, at.log_noises)
        lengthwise = (lengthwise + 1 + (at.log_lengths - mean[places]) / LENGTH_SPREAD**2) * part.used
        noisewise = (
            (noisewise + 1 + (at.log_noises - NOISE_MEAN) / NOISE_SPREAD**2) * part.used.any(-1) * free_noise
        )
        value = -log_posterior(part, factored, at, free_noise)
        result = torch.cat([value.unsqueeze(-1), lengthwise, noisewise.unsqueeze(-1)], -1)
        return result / row_counts[places].unsqueeze(-1)

    def batched_objective(
        points: NDArray[np.float64], batch_indices: list[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        places = torch.as_tensor(batch_indices, device=rows.inputs.device)
        free = torch.from_numpy(points).to(rows.inputs)
        parts = zip(places.split(batch_size), free.split(batch_size), strict=True)
        result = torch.cat([with_gradient(*part) for part in parts]).cpu().numpy()
        return result[:, 0], result[:, 1:]

    limits = [(math.log(LENGTH_FLOOR), math.log(LONGEST))] * width + [
        (math.log(NOISE_FLOOR), math.log(NOISIEST))
    ]
    point = torch.cat([lengths, given_noises.unsqueeze(-1)], -1).cpu().numpy()
    stopping = {"factr": None, "ftol": TOLERANCE, "pgtol": 1e-6, "maxiter": ITERATIONS}
    results, values, _ = fmin_l_bfgs_b_batched(
        batched_objective, point, bounds=limits, pass_batch_indices=True, **stopping
    )
    result = torch.from_numpy(results).to(rows.inputs)
    # Without inputs a regression is a mean and a variance, and the targets are standardised.
    lengths = torch.where(repeated.used, result[:, :width], 0.0)
    noises = torch.where(repeated.used.any(-1), result[:, width] if free_noise else given_noises, 0.0)
    ends = map(HyperParameters, lengths.split(count), noises.split(count))
    return list(ends), -torch.from_numpy(values).to(rows.inputs).reshape(len(begin), count) * rows.counts


MIN_VARIANCE = 1e-12


@dataclass(frozen=True)
class Posterior:
    """The posterior of one regression, with its factors cached; constant if there are no inputs."""

    scales: Tensor  # 1 / l, (p,)
    places: Tensor  # Rows, or inducing points of many, over l, (n, p)
    halves: Tensor  # Half their squared norms, (n,)
    weights: Tensor  # (n,)
    inverse: Tensor  # The root of `Learnt.basis`, transposed, (n, n)
    mean: Tensor  # m, ()
    vague: Tensor  # The standard deviation without inputs, ()
    kind: int = 0  # The kernel, an index into `kernel.KINDS`

    @classmethod
    def of(cls, rows: Rows, learnt: Learnt, hyper: HyperParameters, index: int, width: int) -> "Posterior":
        """The posterior of regression `index` of N, with `width` inputs."""
        scales = (-hyper.log_lengths[index, :width]).exp()
        points, weights, root = learnt.basis(rows, index)
        points = points[:, :width] * scales
        kind = 0 if rows.kinds is None else int(rows.kinds[index])
        vague = (hyper.log_noises[index].exp() / rows.counts[index]).sqrt()
        halves, inverse = 0.5 * points.square().sum(-1), root.mT.contiguous()
        return cls(scales, points, halves, weights, inverse, learnt.mean[index], vague, kind)

    def products(self, scaled: Tensor) -> Tensor:
        """k(w, W), (..., p) -> (..., n)."""
        points = scaled * self.scales
        exponents = points @ self.places.mT - self.halves - 0.5 * points.square().sum(-1, keepdim=True)
        return exponents.exp() if self.kind == 0 else correlation(exponents.mul(-2), self.kind)

    def posterior_mean(self, scaled: Tensor) -> Tensor:
        """mu(w), (..., p) -> (...)."""
        if not scaled.shape[-1]:
            return self.mean.expand(scaled.shape[:-1])
        return self.products(scaled) @ self.weights + self.mean

    def belief(self, scaled: Tensor) -> tuple[Tensor, Tensor]:
        """mu(w) and tau(w), (..., p) -> (...), (...)."""
        if not scaled.shape[-1]:
            return self.mean.expand(scaled.shape[:-1]), self.vague.expand(scaled.shape[:-1])
        products = self.products(scaled)
        variance = 1 - (products @ self.inverse).square().sum(-1)
        return products @ self.weights + self.mean, variance.clamp_min(MIN_VARIANCE).sqrt()
