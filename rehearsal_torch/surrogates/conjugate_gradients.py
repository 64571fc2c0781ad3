"""Kernel systems without their matrix: preconditioned conjugate gradients.

    (K + r I) z = v,   K v in blocks of rows,   preconditioner P = L L^T + r I,

L being a pivoted Cholesky factor of K of small rank; P^-1 v = [v - L (r I + L^T L)^-1 L^T v] / r. Memory is N times the rank,
an iteration costs N^2 kernel values. The preconditioner takes the large eigenvalues, so that few iterations are left.

Source: Gardner et al. (2018), Sec. 4 and Alg. 2, whose solver (linear_operator's `linear_cg`) is used.
"""

import warnings

import torch
from torch import Tensor

from rehearsal_torch.surrogates.pivoted_cholesky import pivoted_cholesky
from rehearsal_torch.surrogates.product_kernel import gram_product


def preconditioner(rows: Tensor, rank: int) -> Tensor:
    """L, (N, d) -> (N, at most `rank`)."""
    return pivoted_cholesky(rows, rank)[1].contiguous()


@torch.no_grad()
def solved(rows: Tensor, ridge: float, vectors: Tensor, factor: Tensor, tolerance: float = 1e-8, iterations: int = 1000) -> Tensor:
    """(K + r I)^-1 v for vectors (N, b).

    Args:
        rows: (N, d), scaled.
        ridge: r.
        vectors: v.
        factor: L of `preconditioner`.
        tolerance: Mean relative residual at which to stop.
        iterations: At most so many; fewer than needed gives a warning.

    Source: Gardner et al. (2018), Alg. 2.
    """
    inner = factor.T @ factor
    inner.diagonal().add_(ridge)
    root = torch.linalg.cholesky(inner)

    def product(each: Tensor) -> Tensor:
        return gram_product(rows, rows, each) + ridge * each

    def nearly_solved(each: Tensor) -> Tensor:
        return (each - factor @ torch.cholesky_solve(factor.T @ each, root)) / ridge

    with warnings.catch_warnings():
        # It scripts its loops on import, which newer versions of torch call deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        from linear_operator.utils.linear_cg import linear_cg
    # The solver's own `eps` of 1e-10 bounds squares of residuals, and would stop it at residuals of 1e-5.
    found: Tensor = linear_cg(
        product,
        vectors,
        tolerance=tolerance,
        eps=1e-30,
        stop_updating_after=tolerance / 10,
        max_iter=iterations,
        max_tridiag_iter=0,
        preconditioner=nearly_solved,
    )
    return found
