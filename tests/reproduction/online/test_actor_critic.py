"""Agents with an actor and a critic: settings of their own, and the library's."""

import numpy as np
import pytest
import torch

from reproduction.online.actor_critic import Ddpg, Sac
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
