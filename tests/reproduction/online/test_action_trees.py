"""Trees over actions: which variable, its value, and chance."""

import pytest

from reproduction.online.action_trees import ActionTrees
from tests.toys.bandit import Bandit, code


def test_trees_refuse_what_they_cannot_say():
    with pytest.raises(ValueError, match="one variable each"):
        ActionTrees().play(Bandit(code(("a", "b"), ("c",))), 5, 0)
    for wrong in ({"bins": 6}, {"bandwidth": 0.0}, {"epsilon": 1.0}):
        with pytest.raises(ValueError, match="power of 2"):
            ActionTrees(**wrong)
