"""Whether recovered noise is independent of a node's inputs: the Hilbert-Schmidt independence criterion.

    HSIC(u, w) = tr(K H L H) / n^2,       H = I - 11'/n,

with Gaussian kernels K on u and L on w whose widths are median distances. Normalised,

    rho = HSIC(u, w) / (HSIC(u, u) HSIC(w, w))^(1/2)  in [0, 1],

0 where the two are independent, as the rows grow. If the recovered noise is independent of the inputs and the
law increases in the noise, what was recovered is the noise up to a monotone change; a report for every node
says how far that is from being so, beside what permutations of the noise give.

As a penalty on hyper-parameters, c n rho of the fitted residuals and the inputs is taken off the log
posterior.

Source: Gretton et al. (2005), Def. 3 and Sec. 3.1; Ren et al. (2025), Thm. 13.2 (monotone laws: independence
identifies the noise).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.estimators.gp_posterior import HyperParameters
from rehearsal_torch.estimators.kernel import Factors, Rows
from rehearsal_torch.seeding import generator


@dataclass(frozen=True)
class Dependence:
    """How much of a dependence is left.

    Attributes:
        value: rho.
        usual: The mean of rho over permutations: what independent noise gives with so few rows.
        probability: How often a permutation gives as much (a p-value).
    """

    value: float
    usual: float
    probability: float


def centred_gram(values: Tensor) -> Tensor:
    """H K H of rows (..., n, p), (..., n, n); a Gaussian kernel of median width, which carries no
    gradient.
    """
    return _centred(_gram(values))


def _gram(values: Tensor) -> Tensor:
    apart = (values.unsqueeze(-2) - values.unsqueeze(-3)).square().sum(-1)
    off = apart.detach()[..., *torch.triu_indices(apart.shape[-1], apart.shape[-1], 1)]
    return (-0.5 * apart / off.median(-1).values.clamp_min(1e-12)[..., None, None]).exp()


def _centred(kernel: Tensor) -> Tensor:
    return (
        kernel
        - kernel.mean(-1, keepdim=True)
        - kernel.mean(-2, keepdim=True)
        + kernel.mean((-2, -1), keepdim=True)
    )


def normalised_hsic(left: Tensor, right: Tensor) -> Tensor:
    """rho of centred Gram matrices, (..., n, n) and (..., n, n) -> (...)."""
    batch_size = (left * right).sum((-2, -1))
    return batch_size / (left.square().sum((-2, -1)) * right.square().sum((-2, -1))).sqrt().clamp_min(1e-300)


def dependence(noise: Tensor, inputs: Tensor, permutations: int = 200, seed: int = 0) -> Dependence:
    """rho of noise (n,) and inputs (n, p), beside permutations of the noise.

    Raises:
        ValueError: if shapes disagree, there are fewer than 5 rows, or no inputs.
    """
    if (
        noise.ndim != 1
        or inputs.ndim != 2
        or len(noise) != len(inputs)
        or len(noise) < 5
        or not inputs.shape[1]
    ):
        raise ValueError(
            f"expected noise (n,) and inputs (n, p), n >= 5, p >= 1; got {tuple(noise.shape)} and "
            f"{tuple(inputs.shape)}"
        )
    own, other = centred_gram(noise.unsqueeze(-1)), centred_gram(inputs)
    value = normalised_hsic(own, other)
    stream = generator(seed)
    turned = torch.stack(
        [
            normalised_hsic(own[order][:, order], other)
            for order in (torch.randperm(len(noise), generator=stream) for _ in range(permutations))
        ]
    )
    return Dependence(
        float(value), float(turned.mean()), float((1 + (turned >= value).sum()) / (1 + permutations))
    )


def independent_probability(noise: Tensor, inputs: Tensor, kept: Tensor) -> Tensor:
    """A quick p-value of independence for each of M regressions: noise (M, n), inputs (M, n, p), rows that
    count (M, n) -> (M,).

    n HSIC is taken for a gamma law with the mean and the variance that it has under independence.

    Source: Gretton et al. (2008), Eq. 4-6.
    """
    found = []
    for own, where, rows in zip(noise, inputs, kept, strict=True):
        kernels = [_gram(values[rows]) for values in (own.unsqueeze(-1), where)]
        left, right = (_centred(kernel) for kernel in kernels)
        count = len(left)
        value = (left * right).sum() / count
        off = [(kernel.sum() - kernel.diagonal().sum()) / (count * (count - 1)) for kernel in kernels]
        mean = (1 + off[0] * off[1] - off[0] - off[1]) / count
        both = (left * right / 6).square()
        both = (both.sum() - both.diagonal().sum()) / (count * (count - 1))
        spread = 72 * (count - 4) * (count - 5) / (count * (count - 1) * (count - 2) * (count - 3)) * both
        shape, scale = mean.square() / spread, count * spread / mean
        found.append(torch.special.gammaincc(shape, value / scale))
    return torch.stack(found) if found else noise.new_zeros(0)


@dataclass(frozen=True)
class DependencePenalty:
    """c n rho(u, w) for each of N regressions.

    Attributes:
        strength: c, in nats a row.
    """

    strength: float

    def __call__(self, rows: Rows, found: Factors, hyper: HyperParameters) -> Tensor:
        """(N,): leave-one-out noise against inputs over the rows that count; 0 without inputs."""
        precision = found.inverse().diagonal(dim1=-2, dim2=-1)
        noise = found.weights / precision.sqrt()
        taken = []
        for place, used in enumerate(rows.used):
            kept = rows.kept[place]
            if not bool(used.any()):
                taken.append(0 * hyper.log_noises[place])
                continue
            rho = normalised_hsic(
                centred_gram(noise[place][kept].unsqueeze(-1)),
                centred_gram(rows.inputs[place][kept][:, used]),
            )
            taken.append(self.strength * kept.sum() * rho)
        return torch.stack(taken)
