"""What is not known of the laws, as fixed draws.

A law is known up to a standard deviation: x_i = m_i + e_i s_i with e_i ~ N(0, 1). One draw e of all nodes, kept the same for every
input, noise and candidate, is one plausible network, and

    f_e(a) = E_u[r(x(a, u, e))]

its expected reward. The mean and the spread of f_e over e are what is believed of E[r | a] and how sure that is; the luck of a single
experiment (the spread over u) is averaged out.

Source: Astudillo and Frazier (2021), Sec. 4.2 (one fixed draw a node and sample); Balandat et al. (2020) (normal Sobol draws).
"""

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from rehearsal_torch.surrogates.causal_model import CausalNetwork


def standard_draws(count: int, width: int, seed: int) -> Tensor:
    """Normal draws (count, width) with mean 0 and variance 1 in every column: scrambled Sobol points, each followed by its mirror image.

    Raises:
        ValueError: if `count` is odd or below 2.
    """
    if count < 2 or count % 2:
        raise ValueError(f"expected an even number of draws, as each comes with its mirror image; got {count}")
    half = draw_sobol_normal_samples(width, count // 2, seed=seed, dtype=torch.float64) if width else torch.zeros(count // 2, 0, dtype=torch.float64)
    both = torch.stack([half, -half], 1).flatten(0, 1)
    return both / both.square().mean(0).sqrt().clamp_min(1e-12)


def plausible_rewards(network: CausalNetwork, actions: Tensor, noise: Tensor, epistemic: Tensor) -> Tensor:
    """f_e(a) for every draw e, (..., k), (S, N), (E, N) -> (..., E)."""
    many, draws = len(epistemic), len(noise)
    pushed = epistemic.repeat_interleave(draws, 0)
    values, _ = network.propagate(actions, noise.repeat(many, 1), lambda place, _: pushed[:, place])
    return network.reward(values).unflatten(-1, (many, draws)).mean(-1)
