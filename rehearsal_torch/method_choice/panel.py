"""The weights of a panel of methods: the mixture of their predictions with the smallest held-out Brier score.

    alpha = argmin sum_i w_i (y_i - sum_m alpha_m p_mi)^2,      alpha >= 0, sum_m alpha_m = 1,

with p_mi the prediction of method m for row i by a model that has not seen the row. A method whose
predictions are poor has hardly a voice when decisions are judged. With G = P W P' it is a quadratic programme
on the simplex, solved as non-negative least squares with a heavy row for the sum.

Source: van der Laan, Polley and Hubbard (2007), Super learner; Breiman (1996), Stacked regressions;
Lawson and Hanson (1974), Ch. 23 (non-negative least squares, and the row for the sum).
"""

import torch
from torch import Tensor

# The weight of the row for the sum, relative to the largest entry of the others.
HEAVY = 1e4


def panel_weights(predicted: Tensor, desired: Tensor, weights: Tensor) -> Tensor:
    """The weight of each method, (m,), at least 0 and with sum 1.

    Args:
        predicted: Predicted probabilities, (m, n).
        desired: Whether each outcome is desired, (n,), 0 or 1.
        weights: The weight of each row, (n,).
    """
    from scipy.optimize import nnls

    root = weights.sqrt()
    left, right = (predicted * root).mT, desired * root
    # n rows become m + 1 at most, with the same sums of squares.
    _, triangle = torch.linalg.qr(torch.cat([left, right[:, None]], 1))
    heavy = HEAVY * float(triangle.abs().max())
    matrix = torch.cat([triangle[:, :-1], torch.full((1, len(predicted)), heavy, dtype=torch.float64)])
    target = torch.cat([triangle[:, -1], torch.tensor([heavy], dtype=torch.float64)])
    found = torch.from_numpy(nnls(matrix.numpy(), target.numpy())[0])
    return found / found.sum()
