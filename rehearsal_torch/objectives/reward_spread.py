"""How unsure a known reward is, when the nodes that it reads are known up to a standard deviation.

With x_i = m_i + e_i s_i, e_i ~ N(0, 1) independent, a weighted sum has the spread

    (sum_i w_i^2 s_i^2)^(1/2)

exactly, |w| s for a single node. For any other reward it is the standard deviation over fixed normal draws e.

Source: Ren et al. (2025), Eq. 5 (one node); the extension to known functions of several nodes is ours.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.known_reward import KnownReward, WeightedSum


def reward_spread(reward: KnownReward, means: Tensor, deviations: Tensor, epistemic: Tensor) -> Tensor:
    """The standard deviation of the reward.

    Args:
        reward: A function of m nodes.
        means: (..., m), their best guesses.
        deviations: (..., m), what is not known of each.
        epistemic: (E, m), normal draws with mean 0 and variance 1, for rewards without a closed form.

    Returns:
        (...), in the reward's unit.
    """
    if isinstance(reward, WeightedSum):
        weights = torch.tensor(list(reward.weights.values()), dtype=deviations.dtype, device=deviations.device)
        if len(weights) == 1:
            return weights.abs() * deviations[..., 0]
        return safe_root((weights.square() * deviations.square()).sum(-1))
    rewards = reward(means.unsqueeze(-2) + epistemic * deviations.unsqueeze(-2))
    return safe_root((rewards - rewards.mean(-1, keepdim=True)).square().mean(-1))


def safe_root(squares: Tensor) -> Tensor:
    """The square root, with a slope of finite size at zero."""
    return squares.clamp_min(1e-30).sqrt()
