"""Worlds in which a chosen set of nodes is set: their equations, expectations and optima."""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.trials.settable_worlds import PSA, CompleteGraph, ToyGraph
from rehearsal_torch.spaces.box import Alteration

SETS = {
    ToyGraph: [(), ("X",), ("Z",)],
    CompleteGraph: [(), ("B",), ("D",), ("E",), ("B", "D"), ("B", "E"), ("D", "E")],
    PSA: [(), ("aspirin",), ("statin",), ("aspirin", "statin")],
}


def settings_of(world, count=4):
    """Random settings in every set."""
    points = world.task.box.sobol(count * len(world.task.sets({})), seed=3)
    for rows, levels in zip(points.split(count), world.task.sets({}), strict=True):
        rows[:, [world.task.actions.index(name) for name in levels]] = torch.nan
    return points


@pytest.mark.parametrize("kind", SETS)
def test_expectations_are_those_of_experiments_and_nothing_beats_the_optimum(kind):
    world = kind(seed=1)
    sets = [tuple(name for name in world.task.actions if name not in each) for each in world.task.sets({})]
    assert sets == SETS[kind], "as in the paper, and where nothing is set"
    settings = settings_of(world)
    noise = world.noise_rows(4000, np.random.default_rng(0))
    rewards = world.rewards(world.simulate(settings[:, None], noise))
    error = rewards.std(-1) / len(noise) ** 0.5
    assert ((rewards.mean(-1) - world.expected(settings)).abs() <= 5 * error + 1e-2).all()
    assert float(world.expected(settings).max()) <= world.optimal_value
    assert float(world.expected(world.optimal_action[None])[0]) == pytest.approx(world.optimal_value)


def test_the_optima_are_known():
    best, value = ToyGraph().best()
    assert best[0].isnan()
    # Y has no noise that Z passes on: cos Z - exp(-Z / 20) at its smallest.
    assert float(best[1]) == pytest.approx(-3.2003, abs=1e-3)
    assert value == pytest.approx(math.exp(3.2003 / 20) - math.cos(3.2003), abs=1e-4)
    best, value = PSA().best()
    assert best.tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
    assert CompleteGraph().optimal_value == pytest.approx(3.484, abs=1e-2)


def test_rows_at_the_start_have_nothing_set_and_a_decision_sets_some():
    world = CompleteGraph(seed=2)
    table = world.observations()
    assert table.names == ("F", "A", "B", "C", "D", "E", "Y")
    assert len(table) == 100
    assert not table.altered.any()
    decision = Decision(Alteration(("D", "B"), torch.tensor([1.0, -2.0]).double()), 0.0)
    row = world.respond(world.case(0), decision)
    assert row.columns(("B", "D")).tolist() == [[-2.0, 1.0]]
    assert row.altered.tolist() == [[name in ("B", "D") for name in row.names]]
    assert world.score(world.case(0), decision)["expected"] < world.optimal_value
