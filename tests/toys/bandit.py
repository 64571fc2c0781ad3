"""A bandit with one right place, for agents. What uses it is skipped where Gymnasium is not installed."""

import numpy as np
import pytest

from rehearsal_torch.adapters.gymnasium import AlterationCode
from rehearsal_torch.data.rehearsal_task import RehearsalTask

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


def needs(agent):
    package = {"ActionTrees": "vowpalwabbit", "UniformAgent": "gymnasium"}.get(
        type(agent).__name__, "stable_baselines3"
    )
    pytest.importorskip(package, reason=f"{package} is an option: pip install 'rehearsal-torch[rl]'")
