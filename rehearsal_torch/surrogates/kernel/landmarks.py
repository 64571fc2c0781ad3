"""Landmarks of a Gaussian kernel, and ridge regression on the features that they define.

Landmarks are the pivots of a pivoted Cholesky factorisation of the kernel, K ~ L L^T with L of rank m; the
next pivot depends on the residual variances d_i = K_ii - sum_j L_ij^2. Greedy pivots (the largest d_i) cover
the edge of the data first and keep the largest error small; pivots sampled with probabilities d_i keep the
sum of errors near that of the best rank-m approximation. Memory is O(n m), time O(n m^2) for n candidate
rows.

Ridge regression on landmarks Z uses K_mm = L L^T and the features phi(h) = L^-1 k_m(h), whose inner product
phi(h)^T phi(h') is the Nystroem kernel:

    theta = (sum_i phi_i phi_i^T + r I)^-1 sum_i phi_i t_i^T,
    prediction = theta^T phi(h) = (L^-T theta)^T k_m(h).

All sums over rows are accumulated in blocks, which need not be in memory. The root L of landmarks that are
known is computed from the same rows by the same steps, and so to the last bit (`landmarks_at`).

Source: Williams and Seeger (2000); pivots: Fine and Scheinberg (2001); Harbrecht, Peters and Schneider
(2012), Alg. 1 (greedy); Chen et al. (2025), Alg. 1 (sampled).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.part import Examples
from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.kernel.product_kernel import accumulated, gaussian

SPENT = 1e-10


def pivoted_cholesky(
    rows: Tensor, rank: int, stream: torch.Generator | None = None, known: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Pivots (m,) in order and L (N, m), m <= rank; stops early once all residual variances are at most
    1e-10.

    Args:
        rows: (N, d), scaled.
        rank: The largest m.
        stream: Generator that samples pivots; None selects them greedily.
        known: The pivots, where they have been chosen.

    Raises:
        ValueError: if known pivots repeat, or are duplicates of others.
    """
    rest, factor, pivots = rows.new_ones(len(rows)), rows.new_empty(min(rank, len(rows)), len(rows)), []
    for j in range(len(factor)):
        if known is not None:
            pivot = int(known[j])
        elif rest.max() > SPENT:
            pivot = int(rest.argmax() if stream is None else _drawn(rest, stream))
        else:
            break
        if rest[pivot] <= 0:
            raise ValueError(f"expected pivots that are independent; row {pivot} is none beside the others")
        column = gaussian(rows, rows[pivot : pivot + 1])[:, 0] - factor[:j, pivot] @ factor[:j]
        factor[j] = column / rest[pivot].sqrt()
        rest = (rest - factor[j].square()).clamp_(min=0)
        rest[pivot] = 0.0
        pivots.append(pivot)
    return torch.tensor(pivots, device=rows.device), factor[: len(pivots)].T


def _drawn(rest: Tensor, stream: torch.Generator) -> Tensor:
    """Samples a row with probability proportional to its residual variance; rows at zero are never
    sampled.
    """
    cumulative = rest.masked_fill(rest <= SPENT, 0.0).cumsum(0)
    return torch.searchsorted(
        cumulative, cumulative[-1] * (1 - torch.rand(1, generator=stream, dtype=torch.float64).to(cumulative))
    ).clamp(max=len(rest) - 1)


PIVOTED, SAMPLED, UNIFORM = "pivoted", "sampled", "uniform"
SEEN = 500


@dataclass(frozen=True)
class Landmarks:
    """Landmarks and the features that they define.

    Attributes:
        chosen: (m,), indices of the rows.
        centres: (m, d), scaled.
        root: (m, m), L.
    """

    chosen: Tensor
    centres: Tensor
    root: Tensor

    def features(self, rows: Tensor) -> Tensor:
        """phi, (n, d) -> (n, m)."""
        return torch.linalg.solve_triangular(self.root, gaussian(self.centres, rows), upper=False).T


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


def landmarks(rows: Tensor, rank: int, how: str, seed: int) -> Landmarks:
    """Selects at most `rank` rows (N, d) as landmarks, without near-duplicates.

    Args:
        rows: (N, d), scaled.
        rank: m.
        how: "pivoted": greedy pivots; "sampled": pivots sampled by their residual variance; "uniform":
            sampled uniformly.
        seed: Seed of the sampling.

    Raises:
        ValueError: if `how` is unknown.
    """
    if how not in (PIVOTED, SAMPLED, UNIFORM):
        raise ValueError(f"expected `landmarks` to be {PIVOTED!r}, {SAMPLED!r} or {UNIFORM!r}; got {how!r}")
    stream = generator(seed)
    among = _among(len(rows), rank, how, stream).to(rows.device)
    pivots, factor = pivoted_cholesky(rows[among], rank, stream if how == SAMPLED else None)
    return Landmarks(among[pivots], rows[among[pivots]], factor[pivots].tril())


def landmarks_at(rows: Tensor, chosen: Tensor, rank: int, how: str, seed: int) -> Landmarks:
    """The landmarks that `landmarks` has selected, with the same root: nothing is chosen again, so that
    rounding cannot lead to others.

    Args:
        rows: See `landmarks`.
        chosen: `Landmarks.chosen`, as floating-point numbers.
        rank: See `landmarks`.
        how: See `landmarks`.
        seed: See `landmarks`.

    Raises:
        ValueError: if these cannot be the places of landmarks.
    """
    among = _among(len(rows), rank, how, generator(seed)).to(rows.device)
    pivots = (chosen[:, None] == among).to(torch.uint8).argmax(1)
    if not torch.equal(among[pivots].to(chosen), chosen):
        raise ValueError(f"expected places of landmarks among {len(rows)} rows; got others")
    _, factor = pivoted_cholesky(rows[among], len(chosen), known=pivots)
    return Landmarks(among[pivots], rows[among[pivots]], factor[pivots].tril())


def _among(count: int, rank: int, how: str, stream: torch.Generator) -> Tensor:
    """The places of the rows among which landmarks are chosen."""
    return torch.randperm(count, generator=stream)[:rank] if how == UNIFORM else torch.arange(count)


def regressed(
    blocks: Blocks[Examples],
    features: Callable[[Examples], Tensor],
    targets: Callable[[Examples], Tensor],
    ridge: float,
) -> Regression:
    """Ridge regression of targets on features of rows in blocks, both given as functions of some rows; the
    blocks are made once.
    """
    sums: tuple[Tensor, ...] | None = None
    for block in blocks:

        def part(span: slice, block: Examples = block) -> tuple[Tensor, ...]:
            rows = tuple(each[span] for each in block)
            phi, projected = features(rows), targets(rows)
            return phi.T @ phi, phi.T @ projected, phi.sum(0)

        first = tuple(each[:1] for each in block)
        columns = features(first).shape[1] + targets(first).shape[1]
        more = accumulated(len(block[0]), columns, part)
        sums = more if sums is None else tuple(one.add_(other) for one, other in zip(sums, more, strict=True))
    assert sums is not None
    moments, cross, total = sums
    moments.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(moments)
    theta = torch.cholesky_solve(cross, factor)
    return Regression(factor, theta, (cross * theta).sum(0), total)


def kernel_errors(rows: Tensor, features: Callable[[Tensor], Tensor], seed: int) -> Tensor:
    """Relative Frobenius error and mean absolute error of phi phi^T against the exact kernel, on at most 500
    rows, (2,).
    """
    some = rows[torch.randperm(len(rows), generator=generator(seed))[:SEEN].to(rows.device)]
    exact, phi = gaussian(some, some), features(some)
    error = phi @ phi.T - exact
    return torch.stack([error.norm() / exact.norm(), error.abs().mean()])


def reported_errors(errors: Tensor) -> dict[str, float]:
    """Errors (stages, 2) by name."""
    kinds, stages = ("frobenius", "mean"), ("outcome", "covariates", "context")
    return {
        f"{stage}_{kind}": float(value)
        for stage, row in zip(stages, errors, strict=False)
        for kind, value in zip(kinds, row, strict=True)
    }
