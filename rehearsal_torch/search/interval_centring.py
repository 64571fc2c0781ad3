"""One outcome: the best action in closed form.

With one outcome y = m + e'z + noise and the interval [y_l, y_u], log P depends on the mean m + e'z alone, rises up to the
interval's middle and falls after it. The best mean is the middle, clipped to what the box can reach; every action with
that mean is as good. Taken is the one on the straight line from the corner with the least mean to the corner with the
largest, so that every variable moves its share instead of the first ones moving all the way. An open side pulls the mean as
far as it goes.

Source: Qin et al. (2025b), Alg. 2 (which fills one coordinate after the other; the optimum is the same).
"""

import torch
from torch import Tensor


def centred(base: Tensor, effect: Tensor, lower: Tensor, upper: Tensor, target: Tensor) -> Tensor:
    """Actions whose mean comes nearest to the target.

    Args:
        base: m, (B,).
        effect: e, (k,).
        lower: The box, (B, k).
        upper: (B, k).
        target: (B,) or (); may be infinite.

    Returns:
        (B, k).
    """
    least, most = torch.where(effect > 0, lower, upper), torch.where(effect > 0, upper, lower)
    low, high = base + least @ effect, base + most @ effect
    span = high - low
    share = torch.where(span > 0, (target - low) / torch.where(span > 0, span, torch.ones_like(span)), torch.full_like(span, 0.5)).clamp(0.0, 1.0)
    return least + share.unsqueeze(-1) * (most - least)
