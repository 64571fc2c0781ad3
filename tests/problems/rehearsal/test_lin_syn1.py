"""Lin-Syn1: published no-action and best values, simulated anew."""

import numpy as np
import pytest
import torch

from rehearsal_torch.problems.rehearsal.lin_syn1 import LinSyn1


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
    other = LinSyn1(reading="std")
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
