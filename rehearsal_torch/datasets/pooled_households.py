"""Pooled testing of households, simulated: what the closed form is checked against.

Households are drawn, with primary cases and those whom they infect at home; swabs work or fail; households fill matrices of G x G
in the order in which they were drawn, whose rows and columns are pools.

Source: Astudillo and Frazier (2021), the model of their released code; written anew.
"""

import numpy as np

from rehearsal_torch.datasets.pooled_protocol import DILUTED, EMPTY, LARGEST, MISSED, SECONDARY, SIZES, WORKS


def simulated_errors(rate: float, groups: int, matrices: int, stream: np.random.Generator) -> tuple[float, float]:
    """Shares of false negatives and of false positives.

    Args:
        rate: r, the primary infection rate.
        groups: G.
        matrices: How many matrices of G x G households.
        stream: Random numbers.
    """
    shape = (matrices, groups, groups)
    size = stream.choice(LARGEST, p=np.asarray(SIZES) / sum(SIZES), size=shape) + 1
    there = np.arange(LARGEST) < size[..., None]
    first = (stream.random((*shape, LARGEST)) < rate) & there
    second = (stream.random((*shape, LARGEST)) < SECONDARY) & there & first.any(-1, keepdims=True)
    infected = first | second
    good = (infected & (stream.random((*shape, LARGEST)) < WORKS)).sum(-1)
    pools = []
    for axis in (2, 1):
        swabs = good.sum(axis)
        chance = np.where(swabs > 0, 1 - MISSED ** (swabs / groups**DILUTED), EMPTY)
        pools.append(stream.random(chance.shape) < chance)
    positive = (pools[0][:, :, None] & pools[1][:, None, :])[..., None] & there
    return float(1 - positive[infected].mean()), float(positive[there & ~infected].mean())
