"""Calibrating an epidemic: targets, exact expectations, and a best action that is not the truth."""

import math
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rehearsal_torch.problems.trials.epidemics import (
    AVERAGE,
    BETA,
    DILUTED,
    EMPTY,
    LARGEST,
    MISSED,
    SECONDARY,
    SIZES,
    WORKS,
    Epidemic,
    PooledTesting,
    infected_members,
    period,
    pooled_errors,
    primary_rate,
    side,
)
from rehearsal_torch.problems.trials.mixture_noise import ModalNoise

TARGETS = {"I11": 0.8465, "I21": 1.2920, "I12": 0.9909, "I22": 1.7498, "I13": 0.7783, "I23": 1.3161}


def test_targets_are_what_the_true_rates_give():
    world = Epidemic()
    reward = world.task.reward.to_plain()
    assert reward["mean"] is True
    assert reward["targets"] == pytest.approx(TARGETS, abs=1e-4)
    nodes = world.simulate(world.true_action, torch.zeros(6, dtype=torch.float64))
    assert dict(zip(world.task.nodes, nodes.tolist(), strict=True)) == pytest.approx(reward["targets"])
    assert float(world.rewards(nodes)) == pytest.approx(0, abs=1e-20)
    more = Epidemic(actions=13)
    torch.testing.assert_close(more.simulate(more.true_action, torch.zeros(6, dtype=torch.float64)), nodes)
    assert more.true_action[-1] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "optimum", "truth"), [(0.1, -0.376, -0.481), (0.3, -0.460, -0.593)])
def test_optima(sigma, optimum, truth):
    world = Epidemic(ModalNoise(sigma))
    assert world.optimal_value == pytest.approx(optimum, abs=1.5e-3)
    assert float(world.expected(world.true_action)) == pytest.approx(truth, abs=2e-3)
    assert world.optimal_value < world.ceiling
    random = world.expected(world.task.box.sobol(4096))
    assert float(random.median()) == pytest.approx({0.1: -2.93, 0.3: -3.25}[sigma], abs=0.3)


@pytest.mark.slow
def test_expectations_are_exact():
    world = Epidemic(ModalNoise(0.3))
    actions = torch.stack([world.true_action, world.optimal_action, torch.ones(12, dtype=torch.float64)])
    noise = world.noise_rows(400_000, np.random.default_rng(0))
    for action in actions:
        rewards = world.rewards(world.simulate(action, noise))
        assert float(world.expected(action)) == pytest.approx(
            float(rewards.mean()), abs=4 * float(rewards.std()) / 400_000**0.5
        )


@pytest.mark.slow
def test_another_search_finds_no_more():
    world, stream = Epidemic(), np.random.default_rng(3)

    def loss(unit):
        point = torch.tensor(unit, dtype=torch.float64, requires_grad=True)
        value = -world.expected(point)
        (derivative,) = torch.autograd.grad(value, point)
        return float(value.detach()), derivative.numpy()

    found = [
        -minimize(loss, stream.uniform(size=12), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * 12).fun
        for _ in range(15)
    ]
    assert max(found) <= world.optimal_value + 1e-5
    assert max(found) >= world.optimal_value - 1e-3


def test_inputs_and_the_number_of_actions():
    block, row = Epidemic(), Epidemic(inputs="row")
    assert set(block.task.inputs("I12")) == {"I11", "I21", "b112", "b122", "b212", "b222"}
    assert set(row.task.inputs("I12")) == {"I11", "I21", "b112", "b122"}
    torch.testing.assert_close(block.expected(block.true_action), row.expected(row.true_action))
    assert len(Epidemic(actions=13).task.actions) == 13
    assert (block.initial, Epidemic(actions=13).initial) == (26, 28)
    with pytest.raises(ValueError, match="12 or 13 actions"):
        Epidemic(actions=14)


def number(value):
    return torch.tensor(float(value), dtype=torch.float64)


@pytest.mark.slow
def test_the_best_protocol_without_noise():
    world = PooledTesting(noise_scale=0.0)
    assert world.optimal_value == pytest.approx(-8.591, abs=1e-3)
    assert (199 * world.optimal_action + 1).tolist() == pytest.approx([23.4, 200, 200], abs=0.1)
    assert "R1" not in world.task.nodes
    nodes = dict(
        zip(
            world.task.nodes,
            world.simulate(world.optimal_action, torch.zeros(6, dtype=torch.float64)).tolist(),
            strict=True,
        )
    )
    assert [nodes[name] for name in ("L1", "L2", "L3")] == pytest.approx([4.13, 1.86, 2.60], abs=5e-3)
    random = world.expected(
        torch.rand(5000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    )
    assert float(random.mean()) == pytest.approx(-15.9, abs=0.3)
    assert float(random.median()) == pytest.approx(-14.0, abs=0.2)
    assert float(random.quantile(0.99)) == pytest.approx(-9.09, abs=0.15)


def test_whole_households_are_certified():
    world = PooledTesting(noise_scale=0.0, whole=True)
    rewards = world.protocols()
    assert world.optimal_value == pytest.approx(float(rewards.max()), abs=1e-12)
    assert world.optimal_value == pytest.approx(-8.5615, abs=1e-4)
    assert world.groups(world.optimal_action).tolist() == [10, 82, 82]
    # Protocols are what the equations say of them.
    for action in world.task.box.sobol(10):
        places = world.groups(action).long() - 1
        assert float(rewards[tuple(places)]) == pytest.approx(float(world.expected(action)), abs=1e-12)


@pytest.mark.slow
def test_noise_changes_little():
    silent = PooledTesting(noise_scale=0.0).optimal_value
    assert PooledTesting(ModalNoise(0.4)).optimal_value == pytest.approx(silent, abs=0.02)
    world = PooledTesting(ModalNoise(0.2, means=(-0.2, 0.4)))
    # Each loss has noise of mean .1 times the scale.
    assert world.optimal_value == pytest.approx(silent - 3 * 0.1 * 0.1, abs=0.02)


def test_states_stay_within_the_population():
    new, loss = period(number(99.5), number(40.0), number(80.0))
    assert 0 <= float(new) <= 0.5
    new, loss = period(number(-0.3), number(0.0), number(10.0))
    assert float(new) == 0
    assert float(loss) > 0
    assert pytest.approx(3.2347, abs=1e-4) == BETA
    poor = PooledTesting(noise_scale=0.0)
    nodes = dict(
        zip(
            poor.task.nodes,
            poor.simulate(torch.ones(3), torch.zeros(6, dtype=torch.float64)).tolist(),
            strict=True,
        )
    )
    assert nodes["I1"] + nodes["I2"] <= 100


def test_what_reaches_nothing_is_no_node():
    world = PooledTesting()
    assert set(world.task.nodes) == {"I1", "R1", "L1", "I2", "R2", "L2", "L3"}
    assert world.task.inputs("R1") == ()
    assert set(world.task.inputs("L3")) == {"I2", "R2", "a3"}
    with pytest.raises(ValueError, match="noise_scale"):
        PooledTesting(noise_scale=-1)


def simulated_errors(
    rate: float, groups: int, matrices: int, stream: np.random.Generator
) -> tuple[float, float]:
    """Simulated shares of false negatives and of false positives.

    Args:
        rate: r, the primary infection rate.
        groups: G.
        matrices: Number of matrices of G x G households.
        stream: Random number generator.
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


# Prevalence, people in a pool, false negatives, false positives, tests a person.
TABLE = [
    (0.01, 20, 0.168, 0.036, 0.091),
    (0.01, 50, 0.166, 0.078, 0.039),
    (0.01, 100, 0.151, 0.169, 0.020),
    (0.05, 50, 0.085, 0.491, 0.039),
]


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
