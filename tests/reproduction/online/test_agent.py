"""Agents learn a bandit with one right place, and chance decides by its seed alone. Each is skipped where its
package is not installed."""

import numpy as np
import pytest
import torch

from reproduction.online.action_trees import ActionTrees
from reproduction.online.actor_critic import Ddpg, Ppo, Sac
from tests.toys.bandit import Bandit, needs


@pytest.fixture
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("agent", "rounds"),
    [(Ddpg(), 150), (Sac(), 150), (Ppo(), 1000), (ActionTrees(), 3000)],
    ids=["ddpg", "sac", "ppo", "cats"],
)
def test_agents_learn(agent, rounds, quiet):
    needs(agent)
    bandit = Bandit()
    agent.play(bandit, rounds, 0)
    assert np.mean(bandit.rewards[-50:]) > 0.4, "twice what chance gives"
