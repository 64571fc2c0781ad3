"""Lin-Syn1, Manage and Market: published no-action and best values, simulated anew."""

import numpy as np
import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.rehearsal.lin_syn1 import LinSyn1
from rehearsal_torch.problems.rehearsal.market import Manage, Market


def contexts(world, count):
    return world.draw(count, world.stream(9)).columns(world.task.context)


def idle(given):
    return given.new_empty(len(given), 0)


def test_lin_syn1_reads_its_noise_as_variance():
    world = LinSyn1()
    given = contexts(world, 2000)
    # References .106 +- .21 and .124 +- .24, over an unknown number of contexts: the bounds are two standard
    # errors of a hundred.
    assert float(world.probability(given, (), idle(given)).mean()) == pytest.approx(0.106, abs=0.042)
    values, best = world.optimal(given[:5], ["A1", "A2"])
    assert best.tolist() == pytest.approx([0.9532] * 5, abs=0.003)
    assert values[0].tolist() == pytest.approx([2.1, 3.0], abs=0.05)
    other = LinSyn1(noise="std")
    assert float(other.optimal(given[:1], ["A1", "A2"])[1]) == pytest.approx(1.0, abs=1e-4)
    assert float(other.probability(given, (), idle(given)).mean()) == pytest.approx(0.124, abs=0.048)


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
        law = Market(order).law
        place = {name: index for index, name in enumerate(law.names)}
        assert float(law.covariance[place[pair[0]], place[pair[1]]]) == 0.016
        assert int((law.covariance != 0).sum()) == len(law.names) + 2
        assert {name: float(law.covariance[place[name], place[name]]) for name in variances} == variances
    with pytest.raises(ValueError, match="unknown order"):
        Market("icml25")


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
    world = Market(drift=True, rows=998)
    reach = world.response(["raw_cost"]).action
    turn = 0.1 * np.sin(2 * np.pi * 1009 / 80)
    price, customers = 2.5, -0.9 - turn / 2
    assert reach[:, 0].tolist() == pytest.approx([-1 + 0.9 * price, 1.6 + turn + customers * price])
    assert not torch.equal(world.observations().values, Market(rows=998).observations().values)
    still = {"raw_cost": torch.tensor(1.0, dtype=torch.float64)}
    assert world.law.drift
    assert Market(rows=998).law.drift == ()
    rounds = torch.tensor([3.0, 9.0], dtype=torch.float64)
    rows = world.law.solve(torch.zeros(2, len(world.law.names), dtype=torch.float64), still, rounds)
    assert rows[:, world.law.names.index("self_pricing")].tolist() == pytest.approx([2.5, 1.5])


def test_context_noise_must_be_its_own():
    from rehearsal_torch.problems.rehearsal.linear_world import LinearLaw, LinearWorld

    class Leaky(LinearWorld):
        def source(self):
            return "a test"

    task = RehearsalTask.of(
        {
            "graph": {"parents": {"y": ["x", "z"]}},
            "context": ["x"],
            "box": {"z": [0, 1]},
            "region": {"y": [0, None]},
        }
    )
    covariance = torch.eye(3, dtype=torch.float64)
    covariance[0, 2] = covariance[2, 0] = 0.5
    weights = {"y": {"x": 1.0, "z": 1.0}}
    with pytest.raises(ValueError, match="independent of the rest"):
        Leaky(task, LinearLaw(("x", "z", "y"), weights, covariance))
    with pytest.raises(ValueError, match="expected equations for"):
        Leaky(task, LinearLaw(("x", "v", "y"), {}, torch.eye(3, dtype=torch.float64)))
    # An open side: the more the better, up to the box.
    values, best = Leaky(
        task, LinearLaw(("x", "z", "y"), weights, torch.eye(3, dtype=torch.float64))
    ).optimal(torch.zeros(1, 1, dtype=torch.float64), ["z"])
    assert values.tolist() == [[1.0]]
    assert float(best) == pytest.approx(0.8413, abs=1e-4)
