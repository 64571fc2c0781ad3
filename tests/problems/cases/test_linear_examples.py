"""Manage and Market: published no-action and best values."""

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.cases.linear_examples import CLIQUE, LinSyn1, Manage, Market, RideHailing
from rehearsal_torch.problems.world_size import SampleSize


def contexts(world, count):
    return world.draw(count, world.stream(9)).columns(world.task.context)


def idle(given):
    return given.new_empty(len(given), 0)


@pytest.mark.parametrize("order", ["icml", "neurips24"])
def test_manage(order):
    world = Manage(order)
    given = contexts(world, 2000)
    assert float(world.probability(given, (), idle(given)).mean()) == pytest.approx(0.0146, abs=0.006)
    values, best = world.optimal(given[:3], world.task.box.names)
    assert best.tolist() == pytest.approx([0.9949] * 3, abs=0.003)
    assert values[0].tolist() == pytest.approx([4.3, 6.0], abs=0.06)


def test_manage_tells_methods_a_polygon_and_scores_the_circle():
    world = Manage(faces=4)
    values, _ = world.optimal(contexts(world, 1), world.task.box.names)
    given = contexts(world, 1)
    rows = world.rehearse(given[0], world.task.box.names, values[0], 20_000).columns(world.task.outcomes)
    square, circle = (
        each.double().mean() for each in (world.task.region.contains(rows), world.desired(rows))
    )
    assert float(circle) == pytest.approx(
        float(world.probability(given, world.task.box.names, values)), abs=0.003
    )
    assert square < circle - 0.02


def test_both_orders_put_the_covariance_where_their_code_does():
    for order, pair, variances in (
        (
            "icml",
            ("raw_cost", "self_pricing"),
            {"raw_cost": 0.03, "self_pricing": 0.06, "competitor_pricing": 0.06},
        ),
        (
            "neurips24",
            ("competitor_pricing", "self_pricing"),
            {"raw_cost": 0.06, "self_pricing": 0.06, "competitor_pricing": 0.03},
        ),
    ):
        system = Market(order).system
        place = {name: index for index, name in enumerate(system.names)}
        assert float(system.covariance[place[pair[0]], place[pair[1]]]) == 0.016
        assert int((system.covariance != 0).sum()) == len(system.names) + 2
        assert {name: float(system.covariance[place[name], place[name]]) for name in variances} == variances
    with pytest.raises(ValueError, match="unknown order"):
        Market("icml25")


@pytest.mark.slow
def test_market_is_solved_by_both_together():
    world = Market()
    given = contexts(world, 200)
    nothing = world.probability(given, (), idle(given))
    one, other = (world.optimal(given, names)[1] for names in (["raw_cost"], ["self_pricing"]))
    # References .168 +- .28, .51 +- .35, .29 +- .37; over 3,000 contexts it is .194, .583, .382, and why is
    # not known. Only the range is held.
    assert 0.13 < float(nothing.mean()) < 0.25
    assert 0.4 < float(one.mean()) < 0.65
    assert 0.2 < float(other.mean()) < 0.5
    assert world.optimal(given[:4], ["raw_cost", "self_pricing"])[1].tolist() == pytest.approx(
        [1.0] * 4, abs=1e-6
    )


def test_drift_decides_at_the_round_after_the_last_row():
    # sin(2 pi t / 12) is one at t = 999: raw cost then moves the own price by 2.5.
    world = Market(size=SampleSize(rows=998), drift=True)
    reach = world.response(["raw_cost"]).action
    turn = 0.1 * np.sin(2 * np.pi * 1009 / 80)
    price, customers = 2.5, -0.9 - turn / 2
    assert reach[:, 0].tolist() == pytest.approx([-1 + 0.9 * price, 1.6 + turn + customers * price])
    assert not torch.equal(
        world.observations().values, Market(size=SampleSize(rows=998)).observations().values
    )
    still = {"raw_cost": torch.tensor(1.0, dtype=torch.float64)}
    assert world.system.drift
    assert Market(size=SampleSize(rows=998)).system.drift == ()
    rounds = torch.tensor([3.0, 9.0], dtype=torch.float64)
    rows = world.system.solve(torch.zeros(2, len(world.system.names), dtype=torch.float64), still, rounds)
    assert rows[:, world.system.names.index("self_pricing")].tolist() == pytest.approx([2.5, 1.5])


def test_lin_syn1_reads_its_noise_as_variance():
    world = LinSyn1()
    given = contexts(world, 2000)
    # References .106 +- .21 and .124 +- .24, over an unknown number of contexts: the bounds are two standard
    # errors of a hundred.
    assert float(world.probability(given, (), idle(given)).mean()) == pytest.approx(0.106, abs=0.042)
    values, best = world.optimal(given[:5], ["A1", "A2"])
    assert best.tolist() == pytest.approx([0.9532] * 5, abs=0.003)
    assert values[0].tolist() == pytest.approx([2.1, 3.0], abs=0.05)
    other = LinSyn1(reading="std")
    assert float(other.optimal(given[:1], ["A1", "A2"])[1]) == pytest.approx(1.0, abs=1e-4)
    assert float(other.probability(given, (), idle(given)).mean()) == pytest.approx(0.124, abs=0.048)


@pytest.fixture(scope="module")
def worlds():
    return {released: RideHailing(released, size=SampleSize(contexts=400)) for released in (True, False)}


def contexts_ride_hailing(world, count=400):
    return world.given([world.case(index) for index in range(count)])


def test_the_released_worlds_reference_values(worlds):
    world = worlds[True]
    given = contexts_ride_hailing(world)
    # References .0297 +- .079, .7849 +- .0070 and .0332, each over contexts_ride_hailing of its own.
    assert float(world.probability(given, (), given.new_empty(400, 0)).mean()) == pytest.approx(
        0.0297, abs=0.009
    )
    best = world.optimal(given, ("recommend",))[1]
    assert float(best.mean()) == pytest.approx(0.7849, abs=0.002)
    assert float(best.std()) == pytest.approx(0.007, abs=0.004)
    assert float(world.optimal(given, ("discount",))[1].mean()) == pytest.approx(0.0332, abs=0.01)
    assert float(world.response(("recommend",)).action) == pytest.approx(-0.3470, abs=5e-5)
    assert float(world.response(("discount",)).action) == pytest.approx(0.0033, abs=5e-5)
    noise = world.response(("recommend",)).noise
    assert float((noise @ world.system.covariance @ noise.T).sqrt()) == pytest.approx(0.0805, abs=1e-4)


@pytest.mark.parametrize("released", [True, False])
def test_the_clique_shares_noise_of_variance_008(worlds, released):
    table = RideHailing(released, size=SampleSize(rows=40_000)).observations()
    first, second = (table.columns([name])[:, 0] for name in CLIQUE)
    weather, users = table.columns(("weather", "users")).T
    # What is left of recommendation, and of congestion given the recommendation's own noise.
    one = first - weather + users
    other = second + weather - 2 * users
    if released:
        # Both columns carry the common noise once: congestion three times the recommendation's own, and its
        # own.
        expected = torch.tensor(
            [[0.0064 + 0.008, 3 * 0.0064 + 0.008], [3 * 0.0064 + 0.008, 9 * 0.0064 + 0.0064 + 0.008]],
            dtype=torch.float64,
        )
        other = other - 3 * (weather - users)
    else:
        expected = torch.tensor(
            [[0.0144, 3 * 0.0144 + 0.008], [3 * 0.0144 + 0.008, 9 * 0.0144 + 6 * 0.008 + 0.0144]],
            dtype=torch.float64,
        )
        other = other - 3 * (weather - users)
    assert torch.allclose(torch.stack([one, other]).cov(), expected, rtol=0.04)


def test_setting_one_leaves_the_common_noise_to_the_other(worlds):
    for released, world in worlds.items():
        rows = world.rehearse(
            torch.tensor([0.3, -0.2], dtype=torch.float64),
            ("recommend",),
            torch.tensor([0.5], dtype=torch.float64),
            20_000,
        )
        congestion, time = rows.columns(("congestion",))[:, 0], rows.columns(("time",))[:, 0]
        assert float(congestion.mean()) == pytest.approx(-0.3 - 0.4 + 1.5, abs=0.01)
        assert float(congestion.var()) == pytest.approx(0.0144, rel=0.05)
        reached = 0.0064 if released else 0.0144
        assert float(time.var()) == pytest.approx(16 * reached + 0.0064, rel=0.05), (
            "released: the common noise stops at the column"
        )


def test_lin_syn1_simulated_anew():
    random = np.random.default_rng(0)
    world, count, sd = LinSyn1(), 200_000, 0.1**0.5
    x1, x2, a1 = 0.2, -0.1, 1.5
    u2 = 10 * x2 + sd * random.standard_normal(count)
    a2 = 2 * a1 + 0.4 * u2 + sd * random.standard_normal(count)
    y1, y2 = (
        -a1 + 0.9 * a2 + sd * random.standard_normal(count),
        1.6 * a1 - 0.9 * a2 + sd * random.standard_normal(count),
    )
    expected = float(((y1 >= 0) & (y1 <= 2) & (y2 >= 0) & (y2 <= 2)).mean())
    given, value = torch.tensor([[x1, x2]], dtype=torch.float64), torch.tensor([[a1]], dtype=torch.float64)
    assert float(world.probability(given, ["A1"], value)) == pytest.approx(expected, abs=0.005)


def test_structural_noise_reaches_the_rating(worlds):
    given = contexts_ride_hailing(worlds[False])
    values, best = worlds[False].optimal(given, ("recommend",))
    assert float(best.mean()) == pytest.approx(0.781, abs=0.002), "a little less than in the released world"
    assert float((values >= -2).double().mean()) == 1.0
