"""Pushes as small networks, R of each at once.

    eta_i(w) = 2 sigmoid(v' relu(W w + c) + d + b) - 1,        4 p hidden units for p inputs,

with a leading restart axis on every weight, so that R searches are one tensor. The offset b starts with sigmoid(b) uniform: the
pushes begin anywhere between the pessimist and the optimist.

Source: Sussex et al. (2023), App. B.2 and released code (width, activation, start of the offset).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

HIDDEN = 4
LEAST = 1e-3


class PushNetworks(nn.Module):
    """eta_i of some nodes, for R restarts.

    Args:
        inputs: Place of a node to p, how many inputs it has; nodes without a network are left out.
        restarts: R.
        draws: Where the first weights come from.
    """

    def __init__(self, inputs: dict[int, int], restarts: int, draws: torch.Generator) -> None:
        super().__init__()
        self.places = {place: index for index, place in enumerate(inputs)}
        self.weights = nn.ParameterList()
        for width in inputs.values():
            hidden = HIDDEN * width
            offset = (LEAST + (1 - 2 * LEAST) * torch.rand(restarts, dtype=torch.float64, generator=draws)).logit()
            first = _uniform((restarts, hidden, width), width, draws), _uniform((restarts, hidden), width, draws)
            last = _uniform((restarts, hidden), hidden, draws), _uniform((restarts,), hidden, draws)
            self.weights.extend(nn.Parameter(each) for each in (*first, *last, offset))

    def push(self, place: int, scaled: Tensor) -> Tensor:
        """eta of a node, (R, S, p) -> (R, S)."""
        start = 5 * self.places[place]
        inward, threshold, outward, shift, offset = (self.weights[start + index] for index in range(5))
        middle = torch.relu(torch.einsum("rsp,rhp->rsh", scaled, inward) + threshold.unsqueeze(-2))
        return 2 * torch.sigmoid(torch.einsum("rsh,rh->rs", middle, outward) + (shift + offset).unsqueeze(-1)) - 1

    @torch.no_grad()
    def only(self, chosen: Tensor) -> None:
        """Keeps some restarts, in the order asked for."""
        for index, each in enumerate(self.weights):
            self.weights[index] = nn.Parameter(each[chosen].clone())


def _uniform(shape: Sequence[int], width: int, draws: torch.Generator) -> Tensor:
    """Uniform in +-1/sqrt(width), the usual start of a linear layer."""
    size = max(width, 1) ** -0.5
    return size * (2 * torch.rand(*shape, dtype=torch.float64, generator=draws) - 1)
