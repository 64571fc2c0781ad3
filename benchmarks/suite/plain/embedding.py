"""Conditional mean embeddings in plain NumPy: the published estimator, all cases and actions in one product.

    fit      alpha = (K_hh + N lambda I)^-1 w and a Cholesky factor of K_xx + N lambda I
    values   omega(x) = alpha . k_x(x) . K_uu (K_xx + N lambda I)^-1 k_x(x), and J(a; x) = k_a(a)' omega(x)

Each block has the median distance of its rows as width.

Source: Du et al. (2026), Eq. (5)-(10).
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve


class PlainEmbedding:
    """The fitted estimator.

    Args:
        x: Contexts, (N, |X|).
        u: Covariates, (N, |U|).
        a: Actions, (N, k).
        w: Targets, (N,).
        ridge: lambda of both stages.
    """

    def __init__(
        self, x: np.ndarray, u: np.ndarray, a: np.ndarray, w: np.ndarray, ridge: float = 1e-3
    ) -> None:
        self.widths = [median_distance(block) for block in (x, u, a)]
        self.x, u, self.a = (block / width for block, width in zip((x, u, a), self.widths, strict=True))
        outer, self.inner = gram(self.x, self.x), gram(u, u)
        joint = outer * self.inner * gram(self.a, self.a)
        for kernel in (outer, joint):
            kernel[np.diag_indices(len(kernel))] += len(x) * ridge
        self.alpha = cho_solve(cho_factor(joint, lower=True), w)
        self.outer = cho_factor(outer, lower=True)

    def values(self, contexts: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """J of every action in every case: (B, |X|), (G, k) -> (B, G)."""
        near = gram(self.x, contexts / self.widths[0])
        omega = self.alpha[:, None] * near * (self.inner @ cho_solve(self.outer, near))
        return (gram(actions / self.widths[2], self.a) @ omega).T


def median_distance(rows: np.ndarray) -> float:
    """The median distance of pairs of the first 500 rows."""
    some = rows[:500]
    apart = np.sqrt(((some[:, None] - some) ** 2).sum(-1))
    return float(np.median(apart[np.triu_indices(len(some), 1)]))


def gram(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The Gaussian kernel of width one."""
    half = (rows**2).sum(1)[:, None] / 2 + (others**2).sum(1) / 2
    return np.exp(np.minimum(rows @ others.T - half, 0.0))
