"""Pivoted Cholesky factorisation of a Gaussian kernel without its matrix.

    K ~ L L^T,  L of rank m; the next pivot depends on the rows' residual variances d_i = K_ii - sum_j L_ij^2.

The pivots are landmarks; L L^T is the Nystroem approximation with these landmarks. Greedy pivots (the largest d_i) cover the
data's edge first and keep the largest error small; pivots drawn with probabilities d_i keep the sum of errors near that of
the best rank-m approximation. Memory is N m, work N m^2.

Source: Fine and Scheinberg (2001); Harbrecht, Peters and Schneider (2012), Alg. 1 (greedy); Chen et al. (2025), Alg. 1 (drawn).
"""

import torch
from torch import Tensor

from rehearsal_torch.surrogates.product_kernel import gaussian

SPENT = 1e-10


def pivoted_cholesky(rows: Tensor, rank: int, stream: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Pivots (m,) in order and L (N, m), m <= rank; stops early where no row has a residual above 1e-10.

    Args:
        rows: (N, d), scaled.
        rank: The largest m.
        stream: Draws pivots; None takes them greedily.
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
    """A row with probability proportional to what is left of it; what is spent is not drawn."""
    heap = rest.masked_fill(rest <= SPENT, 0.0).cumsum(0)
    return torch.searchsorted(heap, heap[-1] * (1 - torch.rand(1, generator=stream, dtype=torch.float64).to(heap))).clamp(max=len(rest) - 1)
