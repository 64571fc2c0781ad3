"""The best action of a world whose expected reward can be computed.

    a* = argmax_a E[r | a],        a in a box.

Where the maximiser is not known in closed form it is searched for: the value at given starts and at points spread over the box, then
L-BFGS-B with exact gradients from the best of them. The search has no random numbers of its own, so the answer is the same in every
process. It is a lower bound of the maximum; worlds say what else is known of it.

Source: Byrd et al. (1995) for L-BFGS-B.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from rehearsal_torch.spaces.box import Box


def best_action(
    value: Callable[[Tensor], Tensor], box: Box, starts: Tensor | None = None, *, spread: int = 2048, refined: int = 12, steps: int = 200
) -> tuple[Tensor, float]:
    """The best action found, (k,), and its value.

    Args:
        value: (n, k) -> (n,), differentiable.
        box: The actions.
        starts: (m, k), where a maximum is expected; None for none.
        spread: Sobol points that are tried as well.
        refined: How many of all these are improved, the best ones.
        steps: At most so many L-BFGS-B steps each.
    """
    tried = box.sobol(spread, seed=1)
    tried = tried if starts is None else torch.cat([starts, tried])
    with torch.no_grad():
        values = value(tried)
    found: list[tuple[Tensor, float]] = []
    for place in values.topk(min(refined, len(tried))).indices:
        found.append((tried[place], float(values[place])))
        found.append(_climbed(value, box, tried[place], steps))
    return max(found, key=lambda pair: pair[1])


def _climbed(value: Callable[[Tensor], Tensor], box: Box, start: Tensor, steps: int) -> tuple[Tensor, float]:
    width, scale = box.width, 1.0

    def loss(unit: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        point = torch.from_numpy(unit).requires_grad_()
        negative = -value((box.lower + point * width)[None])[0] / scale
        (slope,) = torch.autograd.grad(negative, point)
        return float(negative.detach()), slope.numpy()

    unit = ((start - box.lower) / width).numpy()
    scale = max(1e-6, abs(loss(unit)[0]))  # stopping rules are relative to the size of the value
    result = minimize(loss, unit, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(unit), options={"maxiter": steps, "ftol": 1e-14, "gtol": 1e-10})
    return box.project(box.lower + torch.from_numpy(result.x) * width), -float(result.fun) * scale
