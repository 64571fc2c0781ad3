"""Entropy from samples, by the distance to the k-th nearest neighbour.

Of N draws in d dimensions, each in its own unit, with r_i the distance from draw i to its k-th nearest neighbour,

    H = psi(N) - psi(k) + log V_d + (d / N) sum_i log r_i,       V_d = pi^(d/2) / Gamma(d/2 + 1).

Distances compare dimensions, so that draws are scaled to unit deviation first and the logarithms of the scales added back. The
estimate is consistent, but slow in d: its bias falls like N^(-1/d).

Source: Kozachenko and Leonenko (1987); Singh et al. (2003) for k > 1. The black box of Qin et al. (2023), App. C, Alg. 4.
"""

import math

import torch
from torch import Tensor


def nearest_neighbour_entropy(draws: Tensor, neighbours: int = 3) -> Tensor:
    """The entropy in nats.

    Args:
        draws: (..., N, d).
        neighbours: k.

    Returns:
        (...); minus infinity where a dimension does not vary.

    Raises:
        ValueError: if there are not more draws than neighbours, or k < 1.
    """
    count, width = draws.shape[-2:]
    if not 1 <= neighbours < count:
        raise ValueError(f"expected 1 <= neighbours < draws; got {neighbours} and {count}: draw more or ask for nearer neighbours")
    if not width:
        return draws.new_zeros(draws.shape[:-2])
    scale = draws.std(-2, keepdim=True)
    still = (scale == 0).any(-1).any(-1)
    scaled = draws / torch.where(scale > 0, scale, torch.ones_like(scale))
    distances = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist")
    # The nearest draw is the draw itself, at distance zero.
    reach = distances.kthvalue(neighbours + 1, dim=-1).values.clamp_min(1e-300)
    ball = width / 2 * math.log(math.pi) - math.lgamma(width / 2 + 1)
    ranks = torch.digamma(draws.new_tensor(float(count))) - torch.digamma(draws.new_tensor(float(neighbours)))
    found = ranks + ball + width * reach.log().mean(-1) + scale.clamp_min(1e-300).log().sum((-2, -1))
    return torch.where(still, -torch.inf, found)
