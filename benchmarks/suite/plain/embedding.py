"""Conditional mean embeddings in plain NumPy: the published algorithm, its starts in one array.

    fit      alpha = (K_hh + N lambda I)^-1 w and a Cholesky factor of K_xx + N lambda I
    decide   omega(x) = alpha . k_x(x) . K_uu (K_xx + N lambda I)^-1 k_x(x), then gradient steps of fixed
    length
             on J(a; x) = sum_i omega_i exp(-|a_i - a|^2 / 2 s_a^2), clipped to the box, from the actions of
             the rows with the largest positive weights

Widths are given. Cases are decided one after the other, as printed.

Source: Du et al. (2026), Eq. (5)-(10) and Alg. 1.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve


class PlainEmbedding:
    """The fitted estimator.

    Args:
        x: Contexts, (N, |X|).
        u: Covariates, (N, |U|).
        a: Actions, (N, k).
        w: Targets, (N,).
        widths: Those of contexts, covariates and actions.
        ridge: lambda of both stages.
    """

    def __init__(
        self,
        x: np.ndarray,
        u: np.ndarray,
        a: np.ndarray,
        w: np.ndarray,
        widths: Sequence[float],
        ridge: float = 1e-3,
    ) -> None:
        self.x, self.u, self.a, self.width = x / widths[0], u / widths[1], a, widths[2]
        self.context_width = widths[0]
        joint, added = np.concatenate([self.x, self.u, a / self.width], 1), len(x) * ridge
        self.alpha = cho_solve(cho_factor(gram(joint, joint, added), lower=True), w)
        self.outer = cho_factor(gram(self.x, self.x, added), lower=True)
        self.inner: np.ndarray | None = None

    def decide(
        self, context: np.ndarray, lower: np.ndarray, upper: np.ndarray, starts: int, steps: int, rate: float
    ) -> tuple[float, np.ndarray]:
        """The largest J, and its action (k,)."""
        if self.inner is None:
            self.inner = gram(self.u, self.u)
        near = gram(self.x, context[None] / self.context_width)[:, 0]
        omega = self.alpha * near * (self.inner @ cho_solve(self.outer, near))
        first = np.argsort(-omega)[:starts]
        actions = np.clip(self.a[first[omega[first] > 0]], lower, upper)
        for _ in range(steps):
            bumps = self.bumps(actions) * omega
            pull = bumps @ self.a - bumps.sum(1, keepdims=True) * actions
            actions = np.clip(actions + rate * pull / self.width**2, lower, upper)
        values = self.bumps(actions) @ omega
        best = int(values.argmax())
        return float(values[best]), actions[best]

    def bumps(self, actions: np.ndarray) -> np.ndarray:
        """k_a at the rows' actions, (S, k) -> (S, N)."""
        return gram(actions / self.width, self.a / self.width)


def gram(rows: np.ndarray, others: np.ndarray, added: float = 0.0) -> np.ndarray:
    """The Gaussian kernel of width one, with a number added to the diagonal."""
    half = (rows**2).sum(1)[:, None] / 2 + (others**2).sum(1) / 2
    found = np.exp(np.minimum(rows @ others.T - half, 0.0))
    if added:
        found[np.diag_indices(len(found))] += added
    return found
