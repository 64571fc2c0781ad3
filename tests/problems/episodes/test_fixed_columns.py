import pytest
import torch

from rehearsal_torch.problems.episodes.fixed_columns import fixed_columns
from rehearsal_torch.problems.episodes.task import episode_task
from tests.toys.pumps import TASK

ROLES = episode_task(TASK)


@pytest.mark.parametrize(
    ("name", "low", "high", "said"),
    [
        ("flow", 3.0, 3.0, "flow: all values of the pumps to learn from are 3: a constant"),
        ("valve", 0.0, 0.0, "valve: it is shut in all rows of the pumps"),
        ("valve", 1.0, 2.0, "valve: it is never shut among the pumps .*: take this level out"),
        ("oil", 0.0, 0.0, "oil: it is 0 in all rows"),
        ("oil", 0.5, 2.0, "oil: it is never 0 among .*: subtract the usual amount, or give levels"),
    ],
)
def test_columns_from_which_nothing_is_learnt_are_named(name: str, low: float, high: float, said: str):
    least, largest = torch.zeros(len(ROLES.names)), torch.ones(len(ROLES.names))
    assert fixed_columns(ROLES, least, largest) == []
    place = ROLES.names.index(name)
    least[place], largest[place] = low, high
    (fault,) = fixed_columns(ROLES, least, largest)
    import re

    assert re.match(said, fault)
