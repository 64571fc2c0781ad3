"""Bayesian probit classification on random Fourier features, by Laplace approximation, with drawn functions.

A yes/no output y is modelled by a latent sum that is at least zero where the answer is yes,

    y = 1 if f(h) + e >= 0, else 0,      e ~ N(0, 1),      P(y = 1 | h) = Phi(f(h)),

with f = m + phi(h)'beta, phi the features of `feature_regression`, m = Phi^-1 of the share of yes, and
beta ~ N(0, v I). The widths and the relative sizes of the kernel's parts are those of the largest evidence of
a Gaussian process for the answers as numbers, on a subset of the rows with equal shares of both answers, as
far as there are enough. The scale v is the one with the largest Laplace evidence among those that
give f a prior standard deviation t of .1 to 2.6 over the rows,

    L(b) - |b|^2 / (2 v) - log |I + v P'WP| / 2,        L(b) = sum_i log Phi(z_i f_i),   z_i = 2 y_i - 1,

at its own mode b, found by Newton's method for all v in one batch; W has -d^2 L / df_i^2 on its diagonal. All
rows then give the mode and the Laplace posterior

    beta | rows ~ N(b, A^-1),        A = P'WP + I / v.

Beyond t = 2.6 the mode of separable answers is no longer near the middle of their posterior, and the
probabilities of the approximation would return to 1/2.

Where rows belong together, the posterior is widened by the design effect 1 + (m - 1) r, with m the mean size
of the unit of a row, and r the share of the variance of y - P(y = 1 | h) between units.

The rest is as for a regression with noise variance 1, whose residuals are quantiles of N(0, 1): drawn
functions and resampled residuals give draws of the probability. phi'A^-1 phi is the variance of the latent
function relative to that of the latent noise. Used by `surrogates.outcome`.

Source: Kish (1965) (the design effect); Rasmussen and Williams (2006), Sec. 3.4 (Laplace approximation) and
Eq. 3.16 (the derivatives for the probit) and 3.7 (its quality); Albert and Chib (1993) (the latent sum).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.trainable_part import Examples
from rehearsal_torch.estimators.feature_regression import MAX_RESIDUALS, FeatureRegression, between_units
from rehearsal_torch.seeding import generator

SPREADS = (0.1, 0.2, 0.4, 0.7, 1.1, 1.7, 2.6)
SCALE_ROWS, ROWS = 1000, 65_536
STEPS, HALVINGS, TOLERANCE = 50, 8, 1e-9
LOG_ROOT = 0.5 * math.log(2 * math.pi)


class FeatureClassifier(FeatureRegression):
    """Classifications of q outputs, 0 or 1; `forward`, `draws` and so on give the latent function."""

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, p), outputs (n, q) and perhaps units (n,); ValueError unless of both 0 and 1."""
        inputs, outputs = (example.detach().to(torch.float64) for example in examples[:2])
        shares = outputs.sum(0) / len(outputs)
        invalid = bool(((outputs != 0) & (outputs != 1)).any())
        if invalid or bool(((shares == 0) | (shares == 1)).any()):
            raise ValueError(
                f"expected outputs of 0 and 1, both in each column; got shares of 1 of {shares.tolist()}"
            )
        self.location, self.scale = torch.special.ndtri(shares), torch.ones_like(shares)
        order = torch.randperm(len(outputs), generator=generator(self.seed)).to(shares.device)
        balanced = []
        for column in outputs.mT:
            subset = _balanced(column, order, self.evidence_rows)
            answers = column[subset]
            standardised = (answers - answers.mean()) / answers.std().clamp_min(1e-12)
            balanced.append((inputs[subset], standardised))
        self._fit_kernels(balanced)
        rows = order[:SCALE_ROWS]
        for output, column in enumerate(outputs[rows].mT):
            features = self.features(inputs[rows], output)
            # The last feature is the constant, whose coefficient the rows determine.
            size = features[:, :-1].square().sum(-1).mean()
            variances = inputs.new_tensor(SPREADS).square() / size
            modes = modes_of([(features, column)], self.location[output], variances)
            self.amplitudes[output, 3] = 1 / variances[modes.evidence.argmax()]
        self.condition(inputs, outputs)
        if len(examples) > 2:
            self.noise = self._design_effects(inputs, outputs, examples[2])

    def _design_effects(self, inputs: Tensor, outputs: Tensor, units: Tensor) -> Tensor:
        """The factors by which the posterior variance exceeds that of independent rows, (q,)."""
        groups = units.unique(return_inverse=True)[1]
        counts = torch.bincount(groups).to(outputs)
        size = float(counts.square().sum() / counts.sum())
        residuals = outputs - torch.special.ndtr(self(inputs))
        shares = [between_units(column, groups) for column in residuals.mT]
        return outputs.new_tensor([1 + (size - 1) * share / (1 + share) for share in shares])

    def condition(self, inputs: Tensor, outputs: Tensor) -> None:
        """Refits the posterior to other rows, (n, p) and (n, q), with kernels, scales and m as they are."""
        coefficients, roots = [], []
        for output, column in enumerate(outputs.to(torch.float64).mT):
            rows = _Features(self, inputs, column, output)
            modes = modes_of(rows, self.location[output], 1 / self.amplitudes[output, 3:])
            coefficients.append(modes.points[0])
            roots.append(modes.roots[0])
        self.coefficients, self.root = torch.stack(coefficients), torch.stack(roots)
        self.noise = torch.ones_like(self.location)
        count = min(len(inputs), MAX_RESIDUALS)
        quantiles = (torch.arange(count, dtype=torch.float64, device=self.location.device) + 0.5) / count
        self.residuals = torch.special.ndtri(quantiles).unsqueeze(-1).expand(-1, len(self.location)).clone()


class _Features:
    """Features and answers of an output, (n_i, F) and (n_i,), in blocks; a single block is computed once."""

    def __init__(self, model: FeatureClassifier, inputs: Tensor, answers: Tensor, output: int) -> None:
        parts = list(zip(inputs.split(ROWS), answers.split(ROWS), strict=True))
        self.blocks = lambda: ((model.features(rows, output), block) for rows, block in parts)
        self.only = list(self.blocks()) if len(parts) == 1 else None

    def __iter__(self) -> Iterator[Examples]:
        return iter(self.only) if self.only else self.blocks()


@dataclass(frozen=True)
class Modes:
    """The posterior modes of beta for G prior variances."""

    points: Tensor  # b, (G, F)
    roots: Tensor  # The lower Cholesky factors of A, (G, F, F)
    evidence: Tensor  # The Laplace approximation of its logarithm, (G,)


def modes_of(rows: Iterable[Examples], location: Tensor, variances: Tensor) -> Modes:
    """Newton's method with halved steps for variances v (G,), of rows P, (n_i, F), and y, (n_i,)."""
    precision = 1 / variances
    points = variances.new_zeros(len(variances), next(iter(rows))[0].shape[1])
    value = _value(rows, location, precision, points)
    for _ in range(STEPS):
        ascent, roots = _slopes(rows, location, precision, points)
        gradient = ascent - precision.unsqueeze(-1) * points
        step = torch.cholesky_solve(gradient.unsqueeze(-1), roots).squeeze(-1)
        lengths = torch.ones_like(value)
        for _ in range(HALVINGS):
            moved = points + lengths.unsqueeze(-1) * step
            reached = _value(rows, location, precision, moved)
            worse = reached < value
            if not bool(worse.any()):
                break
            lengths = torch.where(worse, lengths / 2, lengths)
        better = reached > value
        gain = torch.where(better, reached - value, torch.zeros_like(value))
        points, value = torch.where(better.unsqueeze(-1), moved, points), torch.where(better, reached, value)
        if bool((gain <= TOLERANCE * (1 + value.abs())).all()):
            break
    roots = _slopes(rows, location, precision, points)[1]
    determinant = 2 * roots.diagonal(dim1=-2, dim2=-1).log().sum(-1) - points.shape[1] * precision.log()
    return Modes(points, roots, value - 0.5 * determinant)


def _latent(features: Tensor, location: Tensor, points: Tensor) -> Tensor:
    """f, (G, n)."""
    return location + points @ features.mT


def _value(rows: Iterable[Examples], location: Tensor, precision: Tensor, points: Tensor) -> Tensor:
    """L(b) - |b|^2 / (2 v), (G,)."""
    fits = [
        torch.special.log_ndtr((2 * answers - 1) * _latent(features, location, points)).sum(-1)
        for features, answers in rows
    ]
    return torch.stack(fits).sum(0) - 0.5 * precision * points.square().sum(-1)


def _slopes(
    rows: Iterable[Examples], location: Tensor, precision: Tensor, points: Tensor
) -> tuple[Tensor, Tensor]:
    """The derivative of L in b, (G, F), and the Cholesky factors of P'WP + I / v, (G, F, F)."""
    ascent = torch.zeros_like(points)
    moments = points.new_zeros(*points.shape, points.shape[1])
    for features, answers in rows:
        slopes, curvature = _derivatives(features, 2 * answers - 1, location, points)
        ascent += slopes @ features
        for moment, curvatures in zip(moments, curvature, strict=True):
            moment += (features.mT * curvatures) @ features
    moments.diagonal(dim1=-2, dim2=-1).add_(precision.unsqueeze(-1))
    return ascent, torch.linalg.cholesky(moments)


def _derivatives(features: Tensor, signs: Tensor, location: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """The first derivatives of L in f, and minus the second ones, (G, n) each."""
    margins = signs * _latent(features, location, points)
    ratio = torch.exp(-0.5 * margins.square() - LOG_ROOT - torch.special.log_ndtr(margins))
    return signs * ratio, (ratio * (ratio + margins)).clamp(0.0, 1.0)


def _balanced(answers: Tensor, order: Tensor, count: int) -> Tensor:
    """At most `count` rows in the given order, half of them of the rarer answer if there are enough."""
    ordered = answers[order]
    rare = ordered == float(answers.mean() < 0.5)
    rare_rows, other_rows = order[rare], order[~rare]
    half = min(len(rare_rows), max(count // 2, 1))
    return torch.cat([rare_rows[:half], other_rows[: max(count - half, 1)]])
