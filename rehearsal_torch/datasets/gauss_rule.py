"""Gauss quadrature for a mixture of normal laws.

Points u_j and weights w_j, j = 1 ... q, with

    sum_j w_j f(u_j) = E f(U)      for every polynomial f of degree at most 2 q - 1:

the eigenvalues of the Jacobi matrix of the polynomials that are orthogonal under the law, and the squared first components of its
eigenvectors. A few points of the mixture do what many of its components would need. Rules of several independent noises
multiply.

Source: Golub and Welsch (1969); the Lanczos process on a fine discrete law (Gautschi, 2004, Sec. 2.2.3).
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rehearsal_torch.datasets.mixture_noise import MixtureNoise


def gauss_rule(law: MixtureNoise, order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights, (q,) each; q = `order`, or fewer where the law has fewer values.

    Args:
        law: The law.
        order: q.
    """
    points, weights = law.nodes(max(order + 1, 16))
    if max(law.deviations) == 0:
        points, weights = np.asarray(law.means), np.asarray(law.weights)
    centre, spread = law.mean, max(law.variance, 1e-300) ** 0.5
    scaled = (points - centre) / spread
    basis, diagonal, beside = [np.sqrt(weights)], [], []
    for place in range(order):
        moved = scaled * basis[-1]
        diagonal.append(float(basis[-1] @ moved))
        for _ in range(2):  # the second pass keeps the vectors orthogonal in floating point
            for each in basis:
                moved = moved - (each @ moved) * each
        size = float(np.linalg.norm(moved))
        if size < 1e-10 or place + 1 == order:
            break
        beside.append(size)
        basis.append(moved / size)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return centre + spread * values, vectors[0] ** 2


def product_rule(laws: Sequence[MixtureNoise], orders: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Points (Q, m) and weights (Q,) for m independent noises, Q the product of the orders."""
    rules = [gauss_rule(law, order) for law, order in zip(laws, orders, strict=True)]
    points = torch.cartesian_prod(*(torch.from_numpy(points) for points, _ in rules)).reshape(-1, len(rules))
    weights = torch.cartesian_prod(*(torch.from_numpy(weights) for _, weights in rules)).reshape(-1, len(rules))
    return points, weights.prod(-1)
