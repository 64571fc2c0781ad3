"""Mixed-effects heteroskedastic regression on random features, with draws of functions, scales and residuals.

A `FeatureRegression` gives draws of a function f; the response to a decision also depends on the residuals.
Here, for each of q outputs,

    y_i = f(h_i) + s(h_i) (b_u(i) + e_i),      b_u ~ (0, t),   e_i ~ (0, 1),

u(i) being the unit (a patient, a store) of row i. Given the scales and t, with n_u the number of rows of a
unit,

    A = sum_i phi_i phi_i' / s_i^2 - sum_u t / (1 + t n_u) S_u S_u' + nu I,    S_u = sum of phi_i / s_i in u,

and likewise for the right-hand side: generalised least squares in sums over rows. t follows from the mean
squares of the residuals between and within units (analysis of variance), and is 0 without units.

The scale is a quadratic in the inputs,

    log s(h)^2 = c'(1, h, q(h)),

fitted to log r_i^2 + 1.27 (the mean of the logarithm of a squared normal variable is -1.27, its variance
pi^2 / 2) by ridge regression, its ridge by the evidence. It is used where the leave-one-out log score of the
residuals is better than that of one scale by `CLEAR` nats at least, as otherwise it only adds noise.

The pool holds whole rows of standardised residuals (y_i - f(h_i)) / s(h_i), which contain b_u: a new row is
of a new unit. Its distribution is drawn by Bayesian bootstraps of whole units. Used by `surrogates.outcome`.

Source: Rubin (1981) (the Bayesian bootstrap); Harvey (1976) (multiplicative heteroscedasticity); Searle,
Casella and McCulloch (1992), Sec. 3.6 and 6.3 (variance components, generalised least squares); Rasmussen and
Williams (2006), Sec. 5.4.2.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

import torch
from torch import Tensor

from rehearsal_torch.data.table import evenly
from rehearsal_torch.estimators.feature_regression import (
    CHUNK,
    LARGEST_LEVERAGE,
    MAX_RESIDUALS,
    FeatureRegression,
    between_units,
    products,
)
from rehearsal_torch.seeding import generator, numpy_generator

# The mean and the variance of log e^2 of a normal e.
LOG_MEAN, LOG_VARIANCE = -1.2704, math.pi**2 / 2
CLEAR = 3.0
# Scales of the rows are within this factor of the middle one.
WIDEST = 20.0
RIDGES = tuple(10.0**power for power in range(-2, 7))


class Responses(NamedTuple):
    """Draws of functions, of the distribution of the pool, and of scales."""

    functions: Tensor  # (q, D, F)
    weights: Tensor  # (D, n), of the pool's rows, with the sum 1
    scales: Tensor  # (q, D, s), coefficients c


class ResponseRegression(FeatureRegression):
    """Regressions of q outputs on p inputs, with a scale, units and a pool of standardised residuals."""

    def __init__(
        self, frequencies: int = 100, evidence_rows: int = 250, iterations: int = 30, seed: int = 0
    ) -> None:
        super().__init__(frequencies, evidence_rows, iterations, seed)
        # The coefficients c of each output, zero but for the first where one scale is enough; t; the unit of
        # each residual; the number of rows.
        self.register_fitted(log_scale=("q", "s"), shared=("q",), members=("n",), count=(1,))
        # The root of the covariance of c; none where one scale is enough for all outputs.
        self.register_fitted(scale_root=("q", "v", "v"))

    def solve(self, *examples: Tensor) -> None:
        """Fits to inputs (n, p), standardised, outputs (n, q), and perhaps indices of units (n,)."""
        inputs, outputs = (example.detach().to(torch.float64) for example in examples[:2])
        units = examples[2] if len(examples) > 2 else None
        spread = outputs.std(0)
        self.location, self.scale = outputs.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))
        order = torch.randperm(len(inputs), generator=generator(self.seed)).to(inputs.device)
        subset = order if units is None else order[_round_robin(units[order])]
        subset = subset[: self.evidence_rows]
        scaled = (outputs[subset] - self.location) / self.scale
        self._fit_kernels((inputs[subset], column.contiguous()) for column in scaled.mT)
        self.condition(inputs, outputs, units)

    def condition(self, inputs: Tensor, outputs: Tensor, units: Tensor | None = None) -> None:
        """Refits posterior, scale and pool to other rows, with the kernels as they are."""
        count = len(inputs)
        standardised = (outputs - self.location) / self.scale
        groups = None if units is None else units.unique(return_inverse=True)[1]
        columns = [
            _Column(self, inputs, column, output, groups).fit()
            for output, column in enumerate(standardised.mT)
        ]
        pool_rows = evenly(count, MAX_RESIDUALS, inputs.device)
        self.root, self.coefficients = (
            torch.stack([getattr(column, name) for column in columns]) for name in ("root", "solved")
        )
        self.noise, self.shared = (
            inputs.new_tensor([getattr(column, name) for column in columns]) for name in ("noise", "shared")
        )
        self.log_scale = torch.stack([column.log_scale for column in columns])
        scale_roots = torch.stack([column.scale_root for column in columns])
        self.scale_root = scale_roots if self.varying else scale_roots[:, :0, :0]
        self.residuals = torch.stack([column.pool[pool_rows] for column in columns], -1)
        unit_of = (torch.arange(count, device=inputs.device) if groups is None else groups).double()
        self.members, self.count = unit_of[pool_rows], inputs.new_tensor([float(count)])
        self.rows = self.row_weights = self.row_units = inputs.new_empty(0)
        if count * (inputs.shape[1] + len(columns) + 1) < self.root.numel():
            self.rows, self.row_units = inputs.clone(), unit_of
            self.row_weights = torch.stack([column.weights for column in columns])

    def derivable(self) -> Mapping[str, tuple[int, ...]]:
        """The roots, where the rows are stored."""
        if self.rows.ndim != 2 or not len(self.rows):
            return {}
        count = self.features_of(self.rows.shape[1])
        return {"root": (self.outputs, count, count)}

    def derive(self, name: str) -> Tensor:  # noqa: ARG002
        """As `Part.derive`."""
        roots = []
        for output, weights in enumerate(self.row_weights):
            column = _Column(self, self.rows, torch.zeros_like(weights), output, self.row_units.long())
            column.shared = float(self.shared[output])
            roots.append(torch.linalg.cholesky(column.equations(weights)[0]))
        return torch.stack(roots)

    @property
    def varying(self) -> bool:
        """Whether the scale depends on the inputs."""
        return bool((self.log_scale[:, 1:] != 0).any())

    def scales(self, inputs: Tensor) -> Tensor:
        """s in the outputs' units, (..., p) -> (..., q)."""
        return self.drawn_scales(self.log_scale.unsqueeze(1), inputs).squeeze(-2)

    def drawn_scales(self, coefficients: Tensor, inputs: Tensor) -> Tensor:
        """s in the outputs' units by draws of c: (q, [N,] G, s), (..., [N, m,] p) -> (..., [N, m,] G, q)."""
        if self.varying:
            features = _quadratic(inputs)
            log_scales = 0.5 * torch.stack([features @ output.mT for output in coefficients], -1)
        else:
            log_scales = 0.5 * self.log_scale[:, 0].expand(*inputs.shape[:-1], coefficients.shape[-2], -1)
        middle = 0.5 * self.log_scale[:, 0]
        return log_scales.clamp(middle - math.log(WIDEST), middle + math.log(WIDEST)).exp() * self.scale

    def responses(self, count: int, stream: torch.Generator) -> Responses:
        """Draws of functions and of the distribution of the pool."""
        functions = self.draws(count, stream)
        _, group_of = self.members.unique(return_inverse=True)
        groups = int(group_of.max()) + 1
        # Rows that the pool leaves out count, too: each row of the pool stands for several.
        shape = float(self.count) / len(group_of) if groups == len(group_of) else 1.0
        random = numpy_generator(int(torch.randint(2**62, (1,), generator=stream)))
        masses = torch.from_numpy(random.gamma(max(shape, 1.0), size=(count, groups)))
        weights = masses.to(group_of.device)[:, group_of]
        normal = torch.randn(*self.log_scale.shape, count, dtype=torch.float64, generator=stream)
        scales = self.log_scale.unsqueeze(1).expand(-1, count, -1)
        if self.varying:
            scales = scales + (self.scale_root @ normal.to(self.scale_root)).mT
        return Responses(functions, weights / weights.sum(-1, keepdim=True), scales)


class _Column:
    """The fit of one standardised output y (n,), with the units of the rows."""

    def __init__(
        self, model: FeatureRegression, inputs: Tensor, target: Tensor, output: int, groups: Tensor | None
    ) -> None:
        self.model, self.inputs, self.target, self.output, self.groups = model, inputs, target, output, groups
        self.ridge = float(model.amplitudes[output, 3])
        count = model.features_of(inputs.shape[1])
        # Few rows are one block, whose features are computed once.
        self.known = list(self._features()) if len(inputs) * count <= CHUNK else None
        self.shared = 0.0

    def fit(self) -> Self:
        """Fits with one scale and no units, then with scales and units."""
        self._solve(torch.ones_like(self.target))
        self.log_scale, self.scale_root = self._fit_scale()
        scales = self._scales()
        if self.groups is not None:
            self.shared = between_units(self.residuals / scales, self.groups)
        if self.shared or bool((self.log_scale[1:] != 0).any()):
            geometric_mean = float(scales.square().log().mean().exp())
            self._solve(geometric_mean / scales.square())
            self.log_scale, self.scale_root = self._fit_scale()
            scales = self._scales()
        self.pool = self.residuals / scales
        # One scale is that of the pool, so that its standard deviation is 1.
        std = float(self.pool.square().mean().sqrt().clamp_min(1e-12))
        self.pool = self.pool / std
        self.log_scale[0] += 2 * math.log(std)
        return self

    def _features(self) -> Iterator[Tensor]:
        size = max(1, CHUNK // self.model.features_of(self.inputs.shape[1]))
        return (self.model.features(part, self.output) for part in self.inputs.split(size))

    def blocks(self) -> Iterable[Tensor]:
        """phi in blocks of rows."""
        return self.known or self._features()

    def equations(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """A and the right-hand side of generalised least squares, (F, F) and (F, 1)."""
        count, start = self.model.features_of(self.inputs.shape[1]), 0
        moment, cross = (self.target.new_zeros(count, width) for width in (count, 1))
        units = 0 if self.groups is None or not self.shared else int(self.groups.max()) + 1
        sums, answers = (self.target.new_zeros(units, width) for width in (count, 1))
        for block in self.blocks():
            rows = slice(start, start + len(block))
            weighted = block * weights[rows, None]
            moment.addmm_(weighted.mT, block)
            cross.addmm_(weighted.mT, self.target[rows, None])
            if units and self.groups is not None:
                shares, groups = weights[rows, None].sqrt(), self.groups[rows]
                sums.index_add_(0, groups, shares * block)
                answers.index_add_(0, groups, shares * self.target[rows, None])
            start += len(block)
        if units and self.groups is not None:
            counts = torch.bincount(self.groups, minlength=units).to(sums).unsqueeze(-1)
            share = self.shared / (1 + self.shared * counts)
            moment.addmm_(sums.mT, share * sums, alpha=-1)
            cross.addmm_(sums.mT, share * answers, alpha=-1)
        moment.diagonal().add_(self.ridge)
        return moment, cross

    def _solve(self, weights: Tensor) -> None:
        """The coefficients, A's root, the noise, and the residuals over the root of 1 - leverage."""
        self.weights, (moment, cross) = weights, self.equations(weights)
        self.root = torch.linalg.cholesky(moment)
        self.solved = torch.cholesky_solve(cross, self.root).squeeze(-1)
        pairs = [
            (
                block @ self.solved,
                torch.linalg.solve_triangular(self.root, block.mT, upper=False).square().sum(0),
            )
            for block in self.blocks()
        ]
        fitted, leverages = (torch.cat(blocks) for blocks in zip(*pairs, strict=True))
        leverages = leverages * weights
        residuals = self.target - fitted
        freedom = (len(residuals) - leverages.sum()).clamp_min(0.1 * len(residuals))
        # Of e alone, in units of the middle scale.
        variance = float((weights * residuals.square()).sum() / freedom)
        self.noise = max(variance / (1 + self.shared), 1e-12)
        self.residuals = residuals / (1 - leverages.clamp_max(LARGEST_LEVERAGE)).sqrt()

    def _scales(self) -> Tensor:
        if not bool((self.log_scale[1:] != 0).any()):
            return (0.5 * self.log_scale[0]).exp().expand(len(self.residuals))
        half, middle = 0.5 * (_quadratic(self.inputs) @ self.log_scale), 0.5 * float(self.log_scale[0])
        return half.clamp(middle - math.log(WIDEST), middle + math.log(WIDEST)).exp()

    def _fit_scale(self) -> tuple[Tensor, Tensor]:
        """c, of a quadratic if it predicts the size of the residuals, else of one scale; its root."""
        design = _quadratic(self.inputs)
        squares = self.residuals.square().clamp_min(1e-12 * self.residuals.square().mean().clamp_min(1e-300))
        constant = torch.zeros(design.shape[1], dtype=design.dtype, device=design.device)
        constant[0] = squares.mean().log()
        no_root = constant.new_zeros(len(constant), len(constant))
        if len(squares) < 5 * design.shape[1]:
            return constant, no_root
        coefficients, root, left_out = _ridge(design, squares.log() - LOG_MEAN)
        # Both scales are compared as fitted to the mean of the squares.
        level = float((squares / left_out.exp()).mean().log())
        score = -0.5 * (left_out + level + squares / (left_out + level).exp())
        constant_score = -0.5 * (constant[0] + squares / constant[0].exp())
        if float((score - constant_score).sum()) < CLEAR:
            return constant, no_root
        coefficients[0] += level
        return coefficients, root


def _quadratic(inputs: Tensor) -> Tensor:
    """(1, h, q(h)), (..., p) -> (..., s)."""
    return torch.cat((inputs.new_ones(*inputs.shape[:-1], 1), inputs, products(inputs)), -1)


def _ridge(design: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients, the root of their covariance and leave-one-out predictions; ridge by the evidence."""
    mean = targets.mean()
    moment, cross = design.mT @ design, design.mT @ (targets - mean)
    values, vectors = torch.linalg.eigh(moment)
    rotated, values = vectors.mT @ cross, values.clamp_min(0)
    highest, best_ridge = -math.inf, RIDGES[-1]
    for ridge in RIDGES:
        shrunk = rotated.square() / (values + ridge)
        evidence = 0.5 * float(shrunk.sum() / LOG_VARIANCE - ((values + ridge) / ridge).log().sum())
        if evidence > highest:
            highest, best_ridge = evidence, ridge
    coefficients = vectors @ (rotated / (values + best_ridge))
    leverages = ((design @ vectors).square() / (values + best_ridge)).sum(-1).clamp_max(LARGEST_LEVERAGE)
    fitted = design @ coefficients
    left_out = mean + (fitted - leverages * (targets - mean)) / (1 - leverages)
    coefficients[0] += mean
    return coefficients, vectors * (LOG_VARIANCE / (values + best_ridge)).sqrt(), left_out


def _round_robin(units: Tensor) -> Tensor:
    """An order of rows with the first row of every unit, then every second one, and so on."""
    order = units.argsort(stable=True)
    _, counts = units[order].unique_consecutive(return_counts=True)
    starts = counts.cumsum(0) - counts
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(units), device=units.device) - starts.repeat_interleave(counts)
    return rank.argsort(stable=True)


def sampled_rows(pool: Tensor, weights: Tensor, points: int, stream: torch.Generator) -> Tensor:
    """Rows of a pool (n, q) by weights (D, n), one from each of m strata of the first column, (D, m, q)."""
    order = pool[:, 0].argsort(stable=True)
    edges = weights[:, order].cumsum(-1).contiguous()
    fractions = torch.rand(len(weights), points, dtype=torch.float64, generator=stream)
    strata = torch.rand(len(weights), points, generator=stream).argsort(-1)
    positions = torch.searchsorted(edges, ((strata + fractions) / points).to(edges))
    return pool[order[positions.clamp_max(len(pool) - 1)]]


def sampled_cells(
    pool: Tensor, weights: Tensor, points: int, stream: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Rows of a pool (n, q) by weights (D, n), one from each of m cells, and the weights of the cells: (D, m,
    q) and (D, m). The pool is halved along one column after the other (a k-d tree) into cells of equal size,
    in random order, so that few points stand for a distribution of several columns; m is a power of two
    (else, or of few rows, as `sampled_rows`, with equal weights).
    """
    levels, count = points.bit_length() - 1, len(pool)
    if points != 2**levels or count < 2 * points:
        rows = sampled_rows(pool, weights, points, stream)
        return rows, torch.full_like(rows[..., 0], 1 / points)
    pool_rows = torch.randperm(count, generator=stream)[: count // points * points].to(pool.device)
    cells = pool_rows.unsqueeze(0)
    for level in range(levels):
        column = pool[cells, level % pool.shape[1]]
        cells = cells.gather(-1, column.argsort(dim=-1, stable=True)).reshape(2 * len(cells), -1)
    cells = cells[torch.randperm(points, generator=stream).to(pool.device)]
    cell_weights = weights[:, cells]
    masses = cell_weights.sum(-1)
    fractions = torch.rand(len(weights), points, 1, dtype=torch.float64, generator=stream).to(masses)
    index = torch.searchsorted(cell_weights.cumsum(-1), fractions * masses.unsqueeze(-1))
    chosen = cells.expand(len(weights), -1, -1).gather(-1, index.clamp_max(cells.shape[-1] - 1)).squeeze(-1)
    return pool[chosen], masses / masses.sum(-1, keepdim=True)
