"""Agents learn a bandit with one right place, and chance decides by its seed alone. Each is skipped where its
package is not installed."""

import numpy as np
import pytest
import torch

from rehearsal_torch.adapters.gymnasium import AlterationCode
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.studies.qwz23.action_trees import ActionTrees
from rehearsal_torch.studies.qwz23.actor_critic import Ddpg, FadingNoise, Ppo, Sac
from rehearsal_torch.studies.qwz23.agent import UniformAgent

gymnasium = pytest.importorskip(
    "gymnasium", reason="Gymnasium is an option: pip install 'rehearsal-torch[rl]'"
)
PARENTS = {"a": ["x"], "b": ["x"], "c": ["x"], "y": ["a", "b", "c"]}


def code(*candidates):
    box = {"a": [-1.0, 1.0], "b": [0.0, 4.0], "c": [-2.0, 2.0]}
    return AlterationCode(
        RehearsalTask.of(
            {
                "graph": {"parents": PARENTS},
                "context": ["x"],
                "box": box,
                "region": {"y": [0, 1]},
                "candidates": [list(each) for each in candidates],
            }
        )
    )


class Bandit(gymnasium.Env):
    """Right is an action near the context in the middle half of [-1, 1]; chance gives .2."""

    def __init__(self, shown=None, right=lambda point, context: abs(point[-1] - context) < 0.2):
        self.code, self.right = shown or code(("a",)), right
        self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (self.code.size,), np.float32)
        self.rewards, self.points = [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = np.array([np.random.default_rng(len(self.rewards)).uniform(-0.5, 0.5)], dtype=np.float32)
        return self.seen, {}

    def step(self, action):
        self.points.append(np.array(action))
        self.rewards.append(float(self.right(action, self.seen[0])))
        return self.seen, self.rewards[-1], True, False, {}


@pytest.fixture
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def needs(agent):
    package = {"ActionTrees": "vowpalwabbit", "UniformAgent": "gymnasium"}.get(
        type(agent).__name__, "stable_baselines3"
    )
    pytest.importorskip(package, reason=f"{package} is an option: pip install 'rehearsal-torch[rl]'")


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


def test_trees_choose_a_variable_and_its_value():
    needs(ActionTrees())
    bandit = Bandit(
        code(("a",), ("b",), ("c",)), lambda point, _: int(np.argmax(point[:3])) == 1 and abs(point[4]) < 0.5
    )
    ActionTrees().play(bandit, 1500, 1)
    assert {int(np.argmax(point[:3])) for point in bandit.points} == {0, 1, 2}
    assert np.mean(bandit.rewards[-200:]) > 0.6


def test_trees_set_several_variables_each_with_its_own():
    needs(ActionTrees())
    bandit = Bandit(code(("a", "c")), lambda point, _: point[0] > 0.2 and point[1] < -0.2)
    ActionTrees().play(bandit, 1500, 0)
    assert np.mean(bandit.rewards[-200:]) > 0.5, "chance gives .16"


def test_directions_and_order_are_drawn():
    needs(ActionTrees())

    def first(seed, shuffled):
        bandit = Bandit(code(("a",), ("b",), ("c",)), lambda *_: False)
        ActionTrees(epsilon=1e-6, shuffled=shuffled).play(bandit, 1, seed)
        chosen = int(np.argmax(bandit.points[0][:3]))
        return chosen, bool(bandit.points[0][3 + chosen] > 0)

    assert {first(seed, False) for seed in range(12)} == {(0, False)}
    assert len({first(seed, True) for seed in range(12)}) > 3


def test_trees_refuse_what_they_cannot_say():
    with pytest.raises(ValueError, match="one variable each"):
        ActionTrees().play(Bandit(code(("a", "b"), ("c",))), 5, 0)
    for wrong in ({"bins": 6}, {"bandwidth": 0.0}, {"epsilon": 1.0}):
        with pytest.raises(ValueError, match="power of 2"):
            ActionTrees(**wrong)


def test_noise_fades():
    noise = FadingNoise(2000, 0)
    drawn = []
    for _ in range(301):
        drawn.append(noise())
        noise.reset()
    assert drawn[0].std() == pytest.approx(0.3, rel=0.1)
    assert drawn[300].std() == pytest.approx(0.15, rel=0.1)
    assert drawn[0].shape == (2000,)
