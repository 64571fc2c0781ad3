"""Error rates of pooled household testing, in closed form.

Households of s = 1 ... 7 people (share h_s) are arranged in a matrix of G x G; each row and each column is
one pool. A person counts as positive if both of the household's pools are positive. With a primary infection
rate r of people and a secondary rate q in a household with a primary case,

    prevalence = sum_s s h_s (r + q (1 - r) - q (1 - r)^s) / sum_s s h_s,
    P_s(M = m) = Bin(s, m; r + (1 - r) q) - (1 - r)^s Bin(s, m; q) + (1 - r)^s [m = 0]

is the distribution of the number M of infected members. Each swab of an infected person is valid with
probability .7, so that K | M ~ Bin(M, .7) swabs are valid. A pool with k >= 1 valid swabs is missed with
probability D^k, D = .05^(1 / G^.076), one without is positive with probability .1. With f(x) = E x^K of one
household, a pool that holds K = k of the own household is positive with probability

    p(k) = 1 - D^k f(D)^(G - 1)   (k >= 1),       p(0) = 1 - f(D)^(G - 1) + .1 f(0)^(G - 1),

and given k rows and columns are independent:

    false negatives = E[1 - p(K)^2 | infected person],   false positives = E[p(K)^2 | healthy person],
    tests = 2 / (G sum_s s h_s) per person.

Source: own derivation, for the simulation in the released code of Astudillo and Frazier (2021), whose model
is reimplemented here; Ren et al. (2025), Sec. 11.7.
"""

from dataclasses import dataclass
from math import comb

import torch
from torch import Tensor

SIZES = (0.2837, 0.3451, 0.1507, 0.1276, 0.0578, 0.0226, 0.0125)
SECONDARY = 0.374
WORKS = 0.7
MISSED, DILUTED, EMPTY = 0.05, 0.076, 0.1
LARGEST = len(SIZES)
AVERAGE = sum(size * share for size, share in enumerate(SIZES, 1)) / sum(SIZES)


@dataclass(frozen=True)
class Errors:
    """Error rates and cost of a protocol.

    Attributes:
        negative: Share of infected people who test negative, (...).
        positive: Share of healthy people who test positive, (...).
        tests: Tests per person, (...).
    """

    negative: Tensor
    positive: Tensor
    tests: Tensor


def side(pool: Tensor, whole: bool = True) -> Tensor:
    """G, the number of households in a pool of `pool` people, any shape: whole households, or the average
    number, which is at least 1.
    """
    return torch.ceil(pool / AVERAGE) if whole else (pool / AVERAGE).clamp_min(1.0)


def primary_rate(prevalence: Tensor) -> Tensor:
    """r, any shape, by Newton's method from 0, which increases monotonically to the root as the prevalence is
    concave in r.
    """
    shares = [size * share / (AVERAGE * sum(SIZES)) for size, share in enumerate(SIZES, 1)]
    rate = torch.zeros_like(prevalence)
    for _ in range(12):
        left = 1 - rate
        reached = (
            rate
            + SECONDARY * left
            - SECONDARY * sum(share * left**size for size, share in enumerate(shares, 1))
        )
        derivative = (
            1
            - SECONDARY
            + SECONDARY * sum(share * size * left ** (size - 1) for size, share in enumerate(shares, 1))
        )
        rate = (rate + (prevalence - reached) / derivative).clamp(0, 1)
    return rate


def infected_members(rate: Tensor) -> Tensor:
    """P(size s, M = m) of a household, (...) -> (..., 7, 8)."""
    left, rows = 1 - rate, []
    anyone = rate + left * SECONDARY
    for size, share in enumerate(SIZES, 1):
        row = []
        for count in range(LARGEST + 1):
            if count > size:
                row.append(torch.zeros_like(rate))
                continue
            spared = left**size * (
                float(count == 0) - comb(size, count) * SECONDARY**count * (1 - SECONDARY) ** (size - count)
            )
            row.append(
                share
                / sum(SIZES)
                * (comb(size, count) * anyone**count * (1 - anyone) ** (size - count) + spared)
            )
        rows.append(torch.stack(row, -1))
    return torch.stack(rows, -2)


# P(K = k | M = m), (8, 8).
GOOD = torch.tensor(
    [
        [comb(m, k) * WORKS**k * (1 - WORKS) ** (m - k) if k <= m else 0.0 for k in range(LARGEST + 1)]
        for m in range(LARGEST + 1)
    ],
    dtype=torch.float64,
)


def pooled_errors(prevalence: Tensor, groups: Tensor) -> Errors:
    """Error rates and tests per person.

    Args:
        prevalence: Share of people who are infected, in (0, 1), (...).
        groups: G, (...), broadcastable with it.

    Returns:
        The three rates, in the broadcast shape.
    """
    members = infected_members(primary_rate(prevalence))
    count = torch.arange(LARGEST + 1, dtype=prevalence.dtype)
    sizes = torch.arange(1, LARGEST + 1, dtype=prevalence.dtype)[:, None]
    household = members.sum(-2) @ GOOD
    infected, healthy = (
        (members * weight).sum(-2) @ GOOD for weight in (count.expand(LARGEST, -1), sizes - count)
    )
    found = MISSED ** (1 / groups**DILUTED)
    others = (household * found[..., None] ** count).sum(-1) ** (groups - 1)
    alone = household[..., 0] ** (groups - 1)
    positive = 1 - found[..., None] ** count * others[..., None]
    positive = torch.cat([(1 - others + EMPTY * alone)[..., None], positive[..., 1:]], -1)
    shares = [weight / weight.sum(-1, keepdim=True) for weight in (infected, healthy)]
    tests = (2 / (groups * AVERAGE)).expand(positive.shape[:-1])
    return Errors(1 - (shares[0] * positive**2).sum(-1), (shares[1] * positive**2).sum(-1), tests)
