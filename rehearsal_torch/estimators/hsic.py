"""Independence of recovered noise and inputs: the Hilbert-Schmidt independence criterion.

    HSIC(u, w) = tr(K H L H) / n^2,       H = I - 11'/n,

with Gaussian kernels K on u and L on w whose widths are median distances. Normalised,

    rho = HSIC(u, w) / (HSIC(u, u) HSIC(w, w))^(1/2)  in [0, 1],

which tends to 0 with the number of rows if the two are independent. If the recovered noise is independent of
the inputs and the mechanism is increasing in the noise, it equals the true noise up to a monotone
transformation; for every node `dependence` measures the deviation from independence, together with the values
under permutations of the noise. Used by `surrogates.network`.

Source: Gretton et al. (2005), Def. 3 and Sec. 3.1; Ren et al. (2025), Thm. 13.2 (monotone mechanisms:
independence identifies the noise).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.estimators.gp_kernel import MANY
from rehearsal_torch.seeding import generator


@dataclass(frozen=True)
class Dependence:
    """A measured dependence, beside that of permuted noise."""

    value: float  # rho
    usual: float  # The mean of rho over permutations
    probability: float  # The permutation p-value


def centred_gram(values: Tensor) -> Tensor:
    """H K H of rows (..., n, p), (..., n, n)."""
    return _centred(_gram(values))


def _gram(values: Tensor) -> Tensor:
    squares = (values.unsqueeze(-2) - values.unsqueeze(-3)).square().sum(-1)
    off_diagonal = squares[..., *torch.triu_indices(squares.shape[-1], squares.shape[-1], 1)]
    return (-0.5 * squares / off_diagonal.median(-1).values.clamp_min(1e-12)[..., None, None]).exp()


def _few(values: Tensor) -> Tensor:
    """At most `MANY` of the rows, evenly spaced."""
    count = len(values)
    return values if count <= MANY else values[torch.linspace(0, count - 1, MANY).round().long()]


def _centred(kernel: Tensor) -> Tensor:
    rows, columns = kernel.mean(-1, keepdim=True), kernel.mean(-2, keepdim=True)
    return kernel - rows - columns + kernel.mean((-2, -1), keepdim=True)


def normalised_hsic(left: Tensor, right: Tensor) -> Tensor:
    """rho of centred Gram matrices, (..., n, n) and (..., n, n) -> (...)."""
    inner = (left * right).sum((-2, -1))
    return inner / (left.square().sum((-2, -1)) * right.square().sum((-2, -1))).sqrt().clamp_min(1e-300)


def dependence(noise: Tensor, inputs: Tensor, permutations: int = 200, seed: int = 0) -> Dependence:
    """rho of noise (n,) and inputs (n, p), also under permutations; ValueError if rows or inputs lack."""
    if not (noise.ndim == 1 and inputs.ndim == 2 and len(noise) == len(inputs) >= 5 and inputs.shape[1]):
        expected = "expected noise (n,) and inputs (n, p), n >= 5, p >= 1"
        raise ValueError(f"{expected}; got {tuple(noise.shape)} and {tuple(inputs.shape)}")
    noise, inputs = _few(noise), _few(inputs)
    noise_gram, input_gram = centred_gram(noise.unsqueeze(-1)), centred_gram(inputs)
    value = normalised_hsic(noise_gram, input_gram)
    stream = generator(seed)
    orders = [torch.randperm(len(noise), generator=stream) for _ in range(permutations)]
    permuted = torch.stack([normalised_hsic(noise_gram[order][:, order], input_gram) for order in orders])
    return Dependence(
        float(value), float(permuted.mean()), float((1 + (permuted >= value).sum()) / (1 + permutations))
    )


def independent_probability(noise: Tensor, inputs: Tensor, kept: Tensor) -> Tensor:
    """A fast p-value of independence for each of M regressions: noise (M, n), inputs (M, n, p), mask of kept
    rows (M, n) -> (M,). The null distribution of n HSIC is approximated by a gamma distribution with its mean
    and variance under independence.

    Source: Gretton et al. (2008), Eq. 4-6.
    """
    probabilities = []
    for u, w, rows in zip(noise, inputs, kept, strict=True):
        kernels = [_gram(_few(values[rows])) for values in (u.unsqueeze(-1), w)]
        left, right = (_centred(kernel) for kernel in kernels)
        count = len(left)
        value = (left * right).sum() / count
        means = [(kernel.sum() - kernel.diagonal().sum()) / (count * (count - 1)) for kernel in kernels]
        mean = (1 + means[0] * means[1] - means[0] - means[1]) / count
        products = (left * right / 6).square()
        products = (products.sum() - products.diagonal().sum()) / (count * (count - 1))
        spread = 72 * (count - 4) * (count - 5) / (count * (count - 1) * (count - 2) * (count - 3)) * products
        shape, scale = mean.square() / spread, count * spread / mean
        probabilities.append(torch.special.gammaincc(shape, value / scale))
    return torch.stack(probabilities) if probabilities else noise.new_zeros(0)
