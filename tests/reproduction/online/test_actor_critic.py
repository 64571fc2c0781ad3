"""Agents with an actor and a critic: settings of their own, and the library's."""

import numpy as np
import pytest
import torch

from reproduction.online.actor_critic import Ddpg, FadingNoise, Sac
from tests.toys.bandit import Bandit, needs


@pytest.fixture
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_one_agents_settings_do_not_leak_into_the_next(quiet):
    # The library writes into the settings it is given; SAC after DDPG would have one critic instead of two.
    needs(Sac())
    alone, after = Bandit(), Bandit()
    Sac().play(alone, 20, 0)
    Ddpg().play(Bandit(), 30, 0)
    Sac().play(after, 20, 0)
    assert np.array_equal(np.concatenate(alone.points), np.concatenate(after.points))


def test_with_the_librarys_settings_the_first_hundred_rounds_are_chance(quiet):
    needs(Ddpg())
    library, other = Bandit(), Bandit()
    Ddpg(library=True).play(library, 100, 0)
    Ddpg(library=True).play(other, 100, 0)
    assert np.array_equal(np.concatenate(library.points), np.concatenate(other.points))
    points = np.concatenate(library.points)
    # Uniform on [-1, 1]: mean 0 and variance 1/3, each within four standard errors.
    assert abs(points.mean()) < 4 * (1 / 300) ** 0.5
    assert abs(points.var() - 1 / 3) < 4 * (4 / 45 / 100) ** 0.5


def test_noise_fades():
    noise = FadingNoise(2000, 0)
    drawn = []
    for _ in range(301):
        drawn.append(noise())
        noise.reset()
    assert drawn[0].std() == pytest.approx(0.3, rel=0.1)
    assert drawn[300].std() == pytest.approx(0.15, rel=0.1)
    assert drawn[0].shape == (2000,)
