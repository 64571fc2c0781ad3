"""Errors of pooled testing: the closed form against simulated households, and against sums by hand."""

import math
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.problems.causal.pooled_protocol import (
    AVERAGE,
    DILUTED,
    EMPTY,
    LARGEST,
    MISSED,
    SECONDARY,
    SIZES,
    WORKS,
    infected_members,
    pooled_errors,
    primary_rate,
    side,
)

# Prevalence, people in a pool, false negatives, false positives, tests a person.
TABLE = [
    (0.01, 20, 0.168, 0.036, 0.091),
    (0.01, 50, 0.166, 0.078, 0.039),
    (0.01, 100, 0.151, 0.169, 0.020),
    (0.05, 50, 0.085, 0.491, 0.039),
]


def number(value):
    return torch.tensor(float(value), dtype=torch.float64)


def simulated_errors(
    rate: float, groups: int, matrices: int, stream: np.random.Generator
) -> tuple[float, float]:
    """Shares of false negatives and of false positives among simulated households: primary cases infect
    others at home, swabs are valid or not, and households fill matrices, whose rows and columns are pools.
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


@pytest.mark.parametrize(("prevalence", "pool", "negative", "positive", "tests"), TABLE)
def test_errors_in_closed_form(prevalence, pool, negative, positive, tests):
    errors = pooled_errors(number(prevalence), side(number(pool)))
    assert float(errors.negative) == pytest.approx(negative, abs=6e-4)
    assert float(errors.positive) == pytest.approx(positive, abs=6e-4)
    assert float(errors.tests) == pytest.approx(tests, abs=6e-4)


@pytest.mark.parametrize(("prevalence", "pool"), [(0.01, 20), (0.05, 50), (0.03, 3)])
def test_errors_agree_with_simulated_households(prevalence, pool):
    groups, rate = side(number(pool)), float(primary_rate(number(prevalence)))
    runs = np.array(
        [
            simulated_errors(
                rate, int(groups), max(1, 40_000 // int(groups) ** 2), np.random.default_rng(seed)
            )
            for seed in range(12)
        ]
    )
    errors = pooled_errors(number(prevalence), groups)
    exact, spread = np.array([float(errors.negative), float(errors.positive)]), runs.std(0, ddof=1) / 12**0.5
    # Persons of one matrix share pools: the error is that between runs.
    assert (np.abs(runs.mean(0) - exact) < 4.5 * spread).all()


def test_people_without_households_would_be_wrong():
    # Were persons infected independently, far more of them would be missed.
    household = float(pooled_errors(number(0.01), number(21)).negative)
    found = 0.05 ** (1 / 21**0.076)
    alone = 1 - 0.7 * (1 - found) ** 2
    assert household < 0.2 < 0.35 < alone


def test_the_law_of_infected_members():
    prevalence = torch.tensor([1e-4, 0.01, 0.3, 0.9], dtype=torch.float64)
    rate = primary_rate(prevalence)
    members = infected_members(rate)
    torch.testing.assert_close(members.sum((-1, -2)), torch.ones(4, dtype=torch.float64))
    assert (members >= -1e-15).all()
    count = torch.arange(8, dtype=torch.float64)
    torch.testing.assert_close((members.sum(-2) * count).sum(-1) / AVERAGE, prevalence)
    stream = np.random.default_rng(0)
    size = stream.choice(7, p=np.asarray(SIZES) / sum(SIZES), size=400_000) + 1
    there = np.arange(7) < size[:, None]
    first = (stream.random(there.shape) < float(rate[2])) & there
    ill = (first | ((stream.random(there.shape) < SECONDARY) & there & first.any(1, keepdims=True))).sum(1)
    shares = np.bincount(ill, minlength=8) / 400_000
    np.testing.assert_allclose(members[2].sum(0).numpy(), shares, atol=0.003)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(prevalence=st.floats(1e-6, 0.999), groups=st.integers(1, 200))
def test_errors_are_shares_and_larger_pools_are_cheaper(prevalence, groups):
    errors, more = (pooled_errors(number(prevalence), number(count)) for count in (groups, groups + 1))
    for share in (errors.negative, errors.positive):
        assert -1e-12 <= float(share) <= 1 + 1e-12
    assert float(more.tests) < float(errors.tests)
    assert float(errors.tests) * groups * AVERAGE == pytest.approx(2.0)


def test_a_single_household_is_computed_by_hand():
    # Of one household, a pool is positive by its own swabs alone; row and column are one household each.
    prevalence = 0.2
    errors = pooled_errors(number(prevalence), number(1))
    members = infected_members(primary_rate(number(prevalence))).numpy()
    missed, ill = 0.0, 0.0
    for m in range(8):
        share = members[:, m].sum() * m
        for k in range(m + 1):
            swabs = comb(m, k) * WORKS**k * (1 - WORKS) ** (m - k)
            positive = 1 - MISSED**k if k else EMPTY
            missed, ill = missed + share * swabs * (1 - positive**2), ill + share * swabs
    assert float(errors.negative) == pytest.approx(missed / ill)
    rate = float(primary_rate(number(prevalence)))
    negative, _ = simulated_errors(rate, 1, 60_000, np.random.default_rng(3))
    assert negative == pytest.approx(missed / ill, abs=0.01)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(prevalence=st.floats(0, 0.9999))
def test_the_primary_rate_leads_to_the_prevalence(prevalence):
    rate = float(primary_rate(number(prevalence)))
    assert 0 <= rate <= prevalence + 1e-12
    shares = [size * share for size, share in enumerate(SIZES, 1)]
    reached = sum(
        share * (rate + SECONDARY * (1 - rate) - SECONDARY * (1 - rate) ** size)
        for size, share in enumerate(shares, 1)
    ) / sum(shares)
    assert reached == pytest.approx(prevalence, abs=1e-9)


def test_a_pool_holds_at_least_one_household():
    people = torch.tensor([1.0, 2.0, 10.0, 100.0], dtype=torch.float64)
    assert side(people).tolist() == [math.ceil(each / AVERAGE) for each in people.tolist()]
    assert side(people, whole=False).tolist() == pytest.approx(
        [max(1.0, each / AVERAGE) for each in people.tolist()]
    )
