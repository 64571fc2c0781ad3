"""Moments of random Fourier features, and products of such features.

For phases t_m = w_m'h of M frequencies the features are the real and imaginary parts of exp(i t_m), side by
side, (cos t_1, ..., cos t_M, sin t_1, ..., sin t_M). Ridge regression on them, divided by sqrt(M), needs of
the rows the sums of phi phi' and of phi y' alone.

Source: Rahimi and Recht (2007), Alg. 1.
"""

import math

import torch
from torch import Tensor

CHUNK = 4_000_000


def waves_of(phases: Tensor) -> Tensor:
    """(cos t, sin t) of phases (..., M), (..., 2 M)."""
    return torch.cat((phases.cos(), phases.sin()), -1)


def moments(phases: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Sums over rows, in blocks of rows to limit memory.

    Args:
        phases: (n, M).
        targets: (n, t).

    Returns:
        Of phi phi', (2 M, 2 M), and of phi y', (2 M, t), with phi divided by sqrt(M).
    """
    count = phases.shape[1]
    width = 2 * count
    moment, cross = phases.new_zeros(width, width), phases.new_zeros(width, targets.shape[1])
    size = CHUNK // width
    for piece, target in zip(phases.split(size), targets.split(size), strict=True):
        waves = waves_of(piece) / math.sqrt(count)
        moment += waves.mT @ waves
        cross += waves.mT @ target
    return moment, cross


def ridge_factor(moment: Tensor, ratio: Tensor) -> Tensor:
    """The lower Cholesky factor of moments (F, F) plus ratio times the identity."""
    return torch.linalg.cholesky(
        moment + ratio * torch.eye(len(moment), dtype=moment.dtype, device=moment.device)
    )


def held_out(waves: Tensor, answers: Tensor, folds: Tensor, ratio: Tensor) -> Tensor:
    """Predictions of answers (n,) from features (n, F), each fold (n,) from the others, (n,)."""
    found = answers.new_zeros(len(answers))
    for fold in folds.unique().tolist():
        own = folds == fold
        mean = answers[~own].mean()
        moment = waves[~own].mT @ waves[~own]
        moment.diagonal().add_(ratio)
        cross = waves[~own].mT @ (answers[~own, None] - mean)
        coefficients = torch.cholesky_solve(cross, torch.linalg.cholesky(moment))
        found[own] = mean + (waves[own] @ coefficients).squeeze(-1)
    return found


def times(left: Tensor, right: Tensor) -> Tensor:
    """The product of complex numbers stored as (real parts, imaginary parts) side by side, (..., 2 M)."""
    (real, imaginary), (other_real, other_imaginary) = left.chunk(2, -1), right.chunk(2, -1)
    return torch.cat(
        (real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real), -1
    )


def misplaced(places: Tensor, count: int, rows: int) -> str:
    """What is wrong with stored places of rows among `rows`, which should be (count,) whole numbers; empty if
    nothing is.
    """
    whole = (places >= 0) & (places < rows) & (places == places.floor())
    if places.shape == (count,) and bool(whole.all()):
        return ""
    return (
        f"places: expected {count} whole numbers from 0 to {rows - 1}; got the size {tuple(places.shape)}, "
        "or other numbers"
    )
