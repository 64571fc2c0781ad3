"""The Gaussian product kernel over context, covariates and actions: its widths, and its linear systems.

    k_h(h, h') = k_x(x, x') k_u(u, u') k_a(a, a'),   k_v(v, v') = exp(-|v - v'|^2 / (2 s_v^2)).

In coordinates divided by the width of their block, k_h is a single Gaussian kernel of width one. An empty
block contributes the constant one.

A model is a choice of widths and ridge, (s_x, s_u, s_a, lambda_h). The paper sets s_v to the median distance
between two rows (median heuristic). The leave-one-out rule computes, on a subset of n rows, the errors

    e_i = alpha_i / [(K_hh + n lambda I)^-1]_ii,

in closed form from one eigendecomposition per kernel, over a grid of multiples of the medians, one multiple
per block. Errors are measured where the data lie, while decisions are taken at the edge of the data, so the
minimiser is largely arbitrary; hence J is averaged over the models that leave-one-out cannot distinguish:
those whose squared errors exceed the best model's by less than one standard error of the paired difference.
Of more such models than `max_models`, evenly spaced ranks are kept.

Landmarks are the pivots of a pivoted Cholesky factorisation of the kernel, K ~ L L^T with L of rank m; the
next pivot depends on the residual variances d_i = K_ii - sum_j L_ij^2. Greedy pivots (the largest d_i) cover
the edge of the data first and keep the largest error small; pivots sampled with probabilities d_i keep the
sum of errors near that of the best rank-m approximation. Memory is O(n m), time O(n m^2) for n candidate
rows.

Conjugate gradients solve (K + r I) z = v without forming K. Their preconditioner P = L L^T + r I captures the
large eigenvalues, so that few iterations remain; P^-1 v = [v - L (r I + L^T L)^-1 L^T v] / r.

Ridge regression on features phi (of landmarks or frequencies) needs sums over rows alone, which are
accumulated in blocks:

    theta = (sum_i phi_i phi_i^T + r I)^-1 sum_i phi_i t_i^T.

Source: Du et al. (2026), Ass. 1, Sec. 3.4, Sec. 4.1, Eq. (9) and (10); Gretton et al. (2012), Sec. 8 (median
heuristic); Allen (1974) and Rasmussen and Williams (2006), Eq. (5.12) (leave-one-out); pivots: Fine and
Scheinberg (2001); Harbrecht, Peters and Schneider (2012), Alg. 1 (greedy); Chen et al. (2025), Alg. 1
(sampled); conjugate gradients: Gardner et al. (2018), Sec. 4 and Alg. 2, whose solver (linear_operator's
`linear_cg`) is used.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from rehearsal_torch.seeding import generator

CELLS = 2**20
CACHED = 2**18  # kernel values per block of actions, which fit into the processor's cache
PAIRED = 1000
BROAD, NARROW = (0.3, 1.0, 3.0, 10.0, 30.0), (0.1, 0.3, 1.0, 3.0)
RIDGES = (1e-4, 1e-3, 1e-2)
MEDIAN, LEAVE_ONE_OUT = "median", "leave_one_out"
LEFT_OUT, MODELS = 300, 8  # rows of the leave-one-out subset; the most models that are averaged
Rule = str | Sequence[float]


def gaussian(rows: Tensor, centres: Tensor) -> Tensor:
    """exp(-|row - centre|^2 / 2) in scaled coordinates, (n, d) and (m, d) -> (n, m); ones where d = 0."""
    lhs, rhs = _exponent_factors(rows, centres)
    return (lhs @ rhs).clamp_(max=0.0).exp_()


def _exponent_factors(rows: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices whose product is -|row - centre|^2 / 2; rounding may leave it slightly positive."""
    ones, squares = rows.new_ones(*rows.shape[:-1], 1), rows.square().sum(-1, keepdim=True)
    lhs = torch.cat([rows, ones, -0.5 * squares], -1)
    half_squares = -0.5 * centres.square().sum(-1, keepdim=True)
    return lhs, torch.cat([centres, half_squares, centres.new_ones(len(centres), 1)], -1).T


def joined(blocks: Sequence[Tensor], widths: Tensor) -> Tensor:
    """Blocks (n, d_v) side by side, each divided by its width, (blocks,): the coordinates of k_h."""
    return torch.cat([block / width for block, width in zip(blocks, widths, strict=True)], -1)


def median_width(rows: Tensor) -> Tensor:
    """The median distance of at most 1,000 rows (n, d) -> (), or the mean if it is 0; one without columns."""
    if not rows.shape[1]:
        return rows.new_ones(())
    places = torch.linspace(0, len(rows) - 1, min(len(rows), PAIRED), device=rows.device).long()
    # Single precision, which may round the last place up.
    distances = torch.nn.functional.pdist(rows[places.clamp_max_(len(rows) - 1)])
    middle = distances.median()
    return middle if middle > 0 else distances.mean().clamp(min=1e-6)


def spans(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows such that a block with `columns` columns holds at most 2^20 numbers."""
    step = max(1, CELLS // max(columns, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def gram_product(rows: Tensor, centres: Tensor, vectors: Tensor) -> Tensor:
    """K v without the matrix K: (n, d), (m, d), (m, b) -> (n, b), in blocks of rows."""
    # Preallocated: small results between large blocks would fragment the heap, up to the size of K.
    products = vectors.new_empty(len(rows), vectors.shape[1])
    for span in spans(len(rows), len(centres)):
        torch.mm(gaussian(rows[span], centres), vectors, out=products[span])
    return products


def summed(actions: Tensor, centres: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    """sum_m sum_i omega_mi exp(-|a_i - a|^2 / (2 s_m^2)) at actions (..., B, k), (..., B), for centres a_i
    (n, k), widths s (M,) and weights omega (B, M, n).
    """
    rows = actions.reshape(-1, *actions.shape[-2:]).transpose(0, 1)
    total = rows.new_zeros(rows.shape[:2])
    for model, width in enumerate(widths):
        total = total + _moments(rows, centres, width, weights[:, model], False)[..., 0]
    return total.T.reshape(actions.shape[:-1])


def summed_with_gradient(
    actions: Tensor, centres: Tensor, widths: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """`summed` and its gradient s^-2 sum_i omega_i k_a(a_i, a) (a_i - a), (..., B) and (..., B, k)."""
    rows = actions.reshape(-1, *actions.shape[-2:]).transpose(0, 1)
    values, gradients = rows.new_zeros(rows.shape[:2]), torch.zeros_like(rows)
    for model, width in enumerate(widths):
        moments = _moments(rows, centres, width, weights[:, model], True)
        values += moments[..., 0]
        gradients += (moments[..., 1:] - rows * moments[..., :1]) / width**2
    return values.T.reshape(actions.shape[:-1]), gradients.transpose(0, 1).reshape(actions.shape)


def _moments(actions: Tensor, centres: Tensor, width: Tensor, weights: Tensor, with_centres: bool) -> Tensor:
    """sum_i omega_i k_a(a_i, a) (1, a_i) at actions (B, S, k), weights (B, n): (B, S, 1) or (B, S, 1 + k)."""
    (contexts, starts, _), (lhs, rhs) = actions.shape, _exponent_factors(actions / width, centres / width)
    step, moments = max(1, CACHED // max(starts * len(centres), 1)), []
    for start in range(0, contexts, step):
        block = weights[start : start + step, :, None]
        kernel = (lhs[start : start + step].flatten(0, 1) @ rhs).exp_().unflatten(0, (-1, starts))
        moments.append(kernel @ (torch.cat([block, block * centres], -1) if with_centres else block))
    return torch.cat(moments)


@dataclass(frozen=True)
class Models:
    """M models: widths (M, 3) of context, covariates and actions, and ridges lambda_h (M,)."""

    widths: Tensor
    ridges: Tensor


@dataclass(frozen=True)
class Choice:
    """The selection of models. ValueError if a setting is out of range."""

    rule: Rule = MEDIAN  # "median"; "leave_one_out"; or three widths for context, covariates and actions
    ridge: float = 1e-3  # lambda_h, where leave-one-out does not select it
    max_models: int = MODELS
    seed: int = 0  # of the leave-one-out subset

    def __post_init__(self) -> None:
        valid = (
            self.rule in (MEDIAN, LEAVE_ONE_OUT)
            if isinstance(self.rule, str)
            else len(self.rule) == 3 and all(width > 0 for width in self.rule)
        )
        if not valid:
            raise ValueError(
                f"expected `widths` {MEDIAN!r} or {LEAVE_ONE_OUT!r}, or `fixed` three positive numbers "
                f"(context, covariates, actions); got {self.rule!r}"
            )
        if self.ridge <= 0:
            raise ValueError(f"expected a positive lambda_h; got {self.ridge}")

    def models(self, blocks: Sequence[Tensor], target: Tensor) -> Models:
        """Models for context, covariates and actions (N, d_v) each, and a target (N,)."""
        if not isinstance(self.rule, str):
            return self._single(target.new_tensor([float(width) for width in self.rule]))
        medians = torch.stack([median_width(block) for block in blocks])
        if self.rule == MEDIAN:
            return self._single(medians)
        subset = torch.randperm(len(target), generator=generator(self.seed))[:LEFT_OUT].to(target.device)
        pairs = zip(blocks, (BROAD, BROAD, NARROW), strict=True)
        grids = [grid if block.shape[1] else (1.0,) for block, grid in pairs]
        widths = medians * target.new_tensor(list(product(*grids)))
        scaled = [joined([block[subset] for block in blocks], width) for width in widths]
        errors = torch.stack([leave_one_out(gaussian(rows, rows), target[subset], RIDGES) for rows in scaled])
        squares = errors.square().flatten(0, 1)
        excess = squares - squares[squares.mean(1).argmin()]
        near = excess.mean(1) <= excess.std(1) / len(subset) ** 0.5
        ranked = squares.mean(1).masked_fill(~near, float("inf")).argsort()[: int(near.sum())]
        ranks = torch.linspace(0, len(ranked) - 1, min(len(ranked), self.max_models), device=ranked.device)
        selected = ranked[ranks.round().long()]
        return Models(widths[selected // len(RIDGES)], target.new_tensor(RIDGES)[selected % len(RIDGES)])

    def _single(self, widths: Tensor) -> Models:
        return Models(widths[None], widths.new_tensor([self.ridge]))


def leave_one_out(gram: Tensor, target: Tensor, ridges: Sequence[float]) -> Tensor:
    """Leave-one-out residuals, (n, n), (n,) -> (number of ridges, n); ridges are lambdas, multiplied by n."""
    values, vectors = torch.linalg.eigh(gram)
    inverses = 1 / (values.clamp(min=0) + len(gram) * values.new_tensor(ridges)[:, None])
    coefficients = (inverses * (vectors.T @ target)) @ vectors.T
    return coefficients / (inverses @ vectors.square().T)


SPENT = 1e-10
CANDIDATES = 65_536  # the most rows among which landmarks are selected
WAYS = PIVOTED, SAMPLED, UNIFORM = "pivoted", "sampled", "uniform"


def pivoted_cholesky(rows: Tensor, rank: int, stream: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Pivots (m,) and L (N, m), m <= rank, of scaled rows (N, d); sampled, or greedy without a stream."""
    residual, factor, pivots = rows.new_ones(len(rows)), rows.new_empty(min(rank, len(rows)), len(rows)), []
    for j in range(len(factor)):
        if residual.max() <= SPENT:
            break
        pivot = int(residual.argmax() if stream is None else _sample_pivot(residual, stream))
        column = gaussian(rows, rows[pivot : pivot + 1])[:, 0] - factor[:j, pivot] @ factor[:j]
        factor[j] = column / residual[pivot].sqrt()
        residual = (residual - factor[j].square()).clamp_(min=0)
        residual[pivot] = 0.0
        pivots.append(pivot)
    return torch.tensor(pivots, device=rows.device), factor[: len(pivots)].T


def _sample_pivot(residual: Tensor, stream: torch.Generator) -> Tensor:
    """Samples a row with probability proportional to its residual variance, never one at zero."""
    cumulative = residual.masked_fill(residual <= SPENT, 0.0).cumsum(0)
    uniform = torch.rand(1, generator=stream, dtype=torch.float64).to(cumulative)
    return torch.searchsorted(cumulative, cumulative[-1] * (1 - uniform)).clamp(max=len(residual) - 1)


def candidates(count: int, seed: int) -> Tensor:
    """The sorted indices of the rows among which landmarks are selected."""
    if count <= CANDIDATES:
        return torch.arange(count)
    return torch.randperm(count, generator=generator(seed))[:CANDIDATES].sort().values


def landmarks(rows: Tensor, rank: int, how: str, seed: int) -> Tensor:
    """Indices (m,) of at most `rank` distinct scaled rows (N, d): "pivoted", "sampled" or "uniform"."""
    stream = generator(seed)
    pool = torch.randperm(len(rows), generator=stream)[:rank] if how == UNIFORM else torch.arange(len(rows))
    pool = pool.to(rows.device)
    return pool[pivoted_cholesky(rows[pool], rank, stream if how == SAMPLED else None)[0]]


def root_of(centres: Tensor) -> Tensor:
    """L of scaled landmarks (m, d) without near-duplicates."""
    return torch.linalg.cholesky(gaussian(centres, centres))


def whitened(root: Tensor, centres: Tensor, rows: Tensor) -> Tensor:
    """Features L^-1 k_m of scaled rows, (n, d) -> (n, m)."""
    return torch.linalg.solve_triangular(root, gaussian(centres, rows), upper=False).T


def preconditioner(rows: Tensor, rank: int) -> Tensor:
    """L, (N, d) -> (N, min(N, rank)), padded with zeros beyond the numerical rank."""
    factor = pivoted_cholesky(rows, rank)[1]
    return torch.nn.functional.pad(factor, (0, min(len(rows), rank) - factor.shape[1])).contiguous()


@torch.no_grad()
def conjugate_gradients(
    rows: Tensor,
    ridge: float,
    vectors: Tensor,
    factor: Tensor,
    tolerance: float = 1e-8,
    iterations: int = 1000,
) -> Tensor:
    """Solves (K + r I) z = v for scaled rows (N, d), vectors (N, b); `factor` is L of `preconditioner`."""
    inner = factor.T @ factor
    inner.diagonal().add_(ridge)
    root = torch.linalg.cholesky(inner)

    def product(v: Tensor) -> Tensor:
        return gram_product(rows, rows, v) + ridge * v

    def precondition(v: Tensor) -> Tensor:
        return (v - factor @ torch.cholesky_solve(factor.T @ v, root)) / ridge

    with warnings.catch_warnings():
        # Its loops are scripted on import, which newer versions of torch deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        from linear_operator.utils.linear_cg import linear_cg
    # The solver's own `eps` of 1e-10 bounds squares of residuals, and would stop it at residuals of 1e-5.
    stopping = {"tolerance": tolerance, "stop_updating_after": tolerance / 10, "eps": 1e-30}
    limits = {"max_iter": iterations, "max_tridiag_iter": 0}
    solution: Tensor = linear_cg(product, vectors, preconditioner=precondition, **stopping, **limits)
    return solution


@dataclass(frozen=True)
class Regression:
    """The result of a ridge regression on features."""

    factor: Tensor  # (m, m), Cholesky factor of sum_i phi_i phi_i^T + r I
    theta: Tensor  # (m, t)
    explained: Tensor  # (t,), sum_i t_i' theta' phi_i, the targets' sum of squares that the fit explains
    total: Tensor  # (m,), sum_i phi_i


def regressed(count: int, rows: Callable[[slice], tuple[Tensor, Tensor]], ridge: float) -> Regression:
    """Ridge regression of targets (n, t) on features (n, m), which `rows` returns for a slice of rows."""
    first, *others = spans(count, sum(columns.shape[1] for columns in rows(slice(0, 1))))
    phi, targets = rows(first)
    moments, cross, total = phi.T @ phi, phi.T @ targets, phi.sum(0)
    for span in others:
        phi, targets = rows(span)
        moments += phi.T @ phi
        cross += phi.T @ targets
        total += phi.sum(0)
    moments.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(moments)
    theta = torch.cholesky_solve(cross, factor)
    return Regression(factor, theta, (cross * theta).sum(0), total)


def waves_of(phases: Tensor) -> Tensor:
    """Features (cos t, sin t) of phases t (..., M), (..., 2 M): real and imaginary parts of exp(i t)."""
    return torch.cat((phases.cos(), phases.sin()), -1)


def times(left: Tensor, right: Tensor) -> Tensor:
    """The product of complex numbers stored as (real parts, imaginary parts), (..., 2 M)."""
    (real, imaginary), (real_2, imaginary_2) = left.chunk(2, -1), right.chunk(2, -1)
    return torch.cat((real * real_2 - imaginary * imaginary_2, real * imaginary_2 + imaginary * real_2), -1)
