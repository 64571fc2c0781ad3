"""Trees over actions: which variable, its value, and chance."""

import numpy as np
import pytest

from reproduction.online.action_trees import ActionTrees
from tests.toys.bandit import Bandit, code, needs


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
