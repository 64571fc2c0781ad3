"""Ride-hailing: published figures, both places of the common noise, and an altered clique."""

import pytest
import torch

from rehearsal_torch.problems.rehearsal.ride_hailing import CLIQUE, RideHailing, ride_hailing_graphs
from rehearsal_torch.problems.world_size import SampleSize


@pytest.fixture(scope="module")
def worlds():
    return {released: RideHailing(released, size=SampleSize(contexts=400)) for released in (True, False)}


def contexts(world, count=400):
    return world.given([world.case(index) for index in range(count)])


def test_the_released_worlds_reference_values(worlds):
    world = worlds[True]
    given = contexts(world)
    # References .0297 +- .079, .7849 +- .0070 and .0332, each over contexts of its own.
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


def test_structural_noise_reaches_the_rating(worlds):
    given = contexts(worlds[False])
    values, best = worlds[False].optimal(given, ("recommend",))
    assert float(best.mean()) == pytest.approx(0.781, abs=0.002), "a little less than in the released world"
    assert float((values >= -2).double().mean()) == 1.0


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


def test_three_graphs_are_told():
    first, other, clique = ride_hailing_graphs()
    assert ("recommend", "congestion") in first.edges
    assert ("congestion", "recommend") in other.edges
    assert clique.clique("recommend") == CLIQUE
    assert RideHailing(size=SampleSize(contexts=1)).task.graph == clique
    assert set(clique.altered(("recommend",)).edges) == set(first.altered(("recommend",)).edges)
    assert [len(graph.edges) for graph in (first, other, clique)] == [14, 14, 13]
