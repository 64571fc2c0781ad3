"""Agents learn a bandit with one right place, and chance decides by its seed alone. Each is skipped where its
package is not installed."""

import numpy as np
import pytest
import torch

from reproduction.online.action_trees import ActionTrees
from reproduction.online.actor_critic import Ddpg, Ppo, Sac
from reproduction.online.agent import UniformAgent
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


@pytest.mark.parametrize(
    "agent",
    [UniformAgent(), Ddpg(), Sac(), Ppo(), Ppo(library=True), ActionTrees()],
    ids=lambda agent: type(agent).__name__,
)
def test_the_seed_decides(agent, quiet):
    needs(agent)

    def points(seed):
        bandit = Bandit()
        agent.play(bandit, 40, seed)
        assert len(bandit.points) == 40
        return np.concatenate(bandit.points)

    first = points(3)
    assert np.array_equal(points(3), first)
    assert not np.array_equal(points(4), first)
