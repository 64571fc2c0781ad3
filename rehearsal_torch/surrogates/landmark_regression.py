"""Ridge regression on landmarks, in blocks of rows.

With landmarks Z, K_mm = L L^T and features phi(h) = L^-1 k_m(h), the Nystroem kernel is phi(h)^T phi(h'), and

    theta = (sum_i phi_i phi_i^T + r I)^-1 sum_i phi_i t_i^T,   prediction = theta^T phi(h) = (L^-T theta)^T k_m(h).

No matrix with more than a block of rows times m numbers is formed, except the pivoted factor.

Source: Williams and Seeger (2000); Rudi, Camoriano and Rosasco (2015), Eq. (9).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.surrogates.pivoted_cholesky import pivoted_cholesky
from rehearsal_torch.surrogates.product_kernel import accumulated, gaussian

PIVOTED, SAMPLED, UNIFORM = "pivoted", "sampled", "uniform"
SEEN = 500


@dataclass(frozen=True)
class Landmarks:
    """Where features stand.

    Attributes:
        chosen: (m,), which rows.
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
    """What a ridge regression on features gives.

    Attributes:
        factor: (m, m), Cholesky factor of sum_i phi_i phi_i^T + r I.
        theta: (m, t).
        explained: (t,), sum_i t_i' theta' phi_i: how much of the targets' energy the fit takes.
        total: (m,), sum_i phi_i.
    """

    factor: Tensor
    theta: Tensor
    explained: Tensor
    total: Tensor


def landmarks(rows: Tensor, rank: int, how: str, seed: int) -> Landmarks:
    """At most `rank` rows (N, d) as landmarks, without near-duplicates.

    Args:
        rows: (N, d), scaled.
        rank: m.
        how: "pivoted": greedy pivots; "sampled": pivots drawn by their residual variance; "uniform": drawn uniformly.
        seed: Decides what is drawn.

    Raises:
        ValueError: if the way is unknown.
    """
    if how not in (PIVOTED, SAMPLED, UNIFORM):
        raise ValueError(f"expected `landmarks` to be {PIVOTED!r}, {SAMPLED!r} or {UNIFORM!r}; got {how!r}")
    stream = torch.Generator().manual_seed(seed)
    among = (torch.randperm(len(rows), generator=stream)[:rank] if how == UNIFORM else torch.arange(len(rows))).to(rows.device)
    pivots, factor = pivoted_cholesky(rows[among], rank, stream if how == SAMPLED else None)
    return Landmarks(among[pivots], rows[among[pivots]], factor[pivots].tril())


def regressed(count: int, features: Callable[[slice], Tensor], targets: Callable[[slice], Tensor], ridge: float) -> Regression:
    """Ridge regression of targets on features of `count` rows, both given for a slice of rows."""

    def part(span: slice) -> tuple[Tensor, ...]:
        phi, told = features(span), targets(span)
        return phi.T @ phi, phi.T @ told, phi.sum(0)

    columns = features(slice(0, 1)).shape[1] + targets(slice(0, 1)).shape[1]
    moments, cross, total = accumulated(count, columns, part)
    moments.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(moments)
    theta = torch.cholesky_solve(cross, factor)
    return Regression(factor, theta, (cross * theta).sum(0), total)


def kernel_errors(rows: Tensor, features: Callable[[Tensor], Tensor], seed: int) -> Tensor:
    """Relative Frobenius error and mean absolute error of phi phi^T against the kernel, on at most 500 rows, (2,)."""
    some = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:SEEN].to(rows.device)]
    exact, phi = gaussian(some, some), features(some)
    error = phi @ phi.T - exact
    return torch.stack([error.norm() / exact.norm(), error.abs().mean()])


def said_errors(errors: Tensor) -> dict[str, float]:
    """Errors (stages, 2) by name."""
    kinds, stages = ("frobenius", "mean"), ("outcome", "covariates", "context")
    return {f"{stage}_{kind}": float(value) for stage, row in zip(stages, errors, strict=False) for kind, value in zip(kinds, row, strict=True)}
