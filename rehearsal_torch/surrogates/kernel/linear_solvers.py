"""Linear systems of a Gaussian kernel: conjugate gradients, landmarks, and ridge regression on features.

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

Source: pivots: Fine and Scheinberg (2001); Harbrecht, Peters and Schneider (2012), Alg. 1 (greedy); Chen et
al. (2025), Alg. 1 (sampled); conjugate gradients: Gardner et al. (2018), Sec. 4 and Alg. 2, whose solver
(linear_operator's `linear_cg`) is used.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.product_kernel import gaussian, gram_product, spans

SPENT = 1e-10
CANDIDATES = 65_536
"""Rows among which landmarks are chosen; of more, so many are drawn."""
WAYS = PIVOTED, SAMPLED, UNIFORM = "pivoted", "sampled", "uniform"


def pivoted_cholesky(rows: Tensor, rank: int, stream: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Pivots (m,) in order and L (N, m), m <= rank, of scaled rows (N, d); stops early once all residual
    variances are at most 1e-10. Without a generator that samples pivots, they are selected greedily.
    """
    rest, factor, pivots = rows.new_ones(len(rows)), rows.new_empty(min(rank, len(rows)), len(rows)), []
    for j in range(len(factor)):
        if rest.max() <= SPENT:
            break
        pivot = int(rest.argmax() if stream is None else _drawn(rest, stream))
        column = gaussian(rows, rows[pivot : pivot + 1])[:, 0] - factor[:j, pivot] @ factor[:j]
        factor[j] = column / rest[pivot].sqrt()
        rest = (rest - factor[j].square()).clamp_(min=0)
        rest[pivot] = 0.0
        pivots.append(pivot)
    return torch.tensor(pivots, device=rows.device), factor[: len(pivots)].T


def _drawn(rest: Tensor, stream: torch.Generator) -> Tensor:
    """Samples a row with probability proportional to its residual variance, never one at zero."""
    cumulative = rest.masked_fill(rest <= SPENT, 0.0).cumsum(0)
    return torch.searchsorted(
        cumulative, cumulative[-1] * (1 - torch.rand(1, generator=stream, dtype=torch.float64).to(cumulative))
    ).clamp(max=len(rest) - 1)


def candidates(count: int, seed: int) -> Tensor:
    """The places of the rows among which landmarks are chosen, in order."""
    if count <= CANDIDATES:
        return torch.arange(count)
    return torch.randperm(count, generator=generator(seed))[:CANDIDATES].sort().values


def landmarks(rows: Tensor, rank: int, how: str, seed: int) -> Tensor:
    """The places of at most `rank` scaled rows (N, d) that serve as landmarks, without near-duplicates, (m,):
    greedy pivots ("pivoted"), pivots sampled by their residual variance ("sampled"), or rows sampled
    uniformly ("uniform").
    """
    stream = generator(seed)
    among = torch.randperm(len(rows), generator=stream)[:rank] if how == UNIFORM else torch.arange(len(rows))
    among = among.to(rows.device)
    return among[pivoted_cholesky(rows[among], rank, stream if how == SAMPLED else None)[0]]


def root_of(centres: Tensor) -> Tensor:
    """L of landmarks (m, d), scaled, none of which is nearly another."""
    return torch.linalg.cholesky(gaussian(centres, centres))


def whitened(root: Tensor, centres: Tensor, rows: Tensor) -> Tensor:
    """Features L^-1 k_m of scaled rows, (n, d) -> (n, m)."""
    return torch.linalg.solve_triangular(root, gaussian(centres, rows), upper=False).T


def preconditioner(rows: Tensor, rank: int) -> Tensor:
    """L, (N, d) -> (N, min(N, rank)), with zeros where the rows are spent before."""
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
    """Solves (K + r I) z = v for scaled rows (N, d) and vectors (N, b), with L of `preconditioner`, up to a
    mean relative residual; without convergence by the last iteration the solver warns.
    """
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
    """The result of a ridge regression on features.

    Attributes:
        factor: (m, m), Cholesky factor of sum_i phi_i phi_i^T + r I.
        theta: (m, t).
        explained: (t,), sum_i t_i' theta' phi_i: the part of the targets' sum of squares that the fit
            explains.
        total: (m,), sum_i phi_i.
    """

    factor: Tensor
    theta: Tensor
    explained: Tensor
    total: Tensor


def regressed(count: int, rows: Callable[[slice], tuple[Tensor, Tensor]], ridge: float) -> Regression:
    """Ridge regression of targets (n, t) on features (n, m), both given for some rows at a time."""
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
    """The product of complex numbers stored as (real parts, imaginary parts) side by side, (..., 2 M)."""
    (real, imaginary), (other_real, other_imaginary) = left.chunk(2, -1), right.chunk(2, -1)
    return torch.cat(
        (real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real), -1
    )
