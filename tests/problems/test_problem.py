"""What a problem is by default, and what each kind of problem hands to a surrogate."""

import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.problem import Problem, World

TABLE = Table.observed(("x", "a", "y"), torch.zeros(3, 3, dtype=torch.float64))
REHEARSAL = RehearsalTask.of(
    {
        "graph": {"parents": {"a": ["x"], "y": ["x", "a"]}},
        "context": ["x"],
        "box": {"a": [0, 1]},
        "region": {"y": [0, 1]},
    }
)
CAUSAL = CausalTask.of({"graph": {"parents": {"y": ["a"]}}, "actions": {"a": [0.0, 1.0]}, "reward": "y"})


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (Problem, {"observations", "held_out", "count", "case", "score", "card"}),
        (World, {"observations", "held_out", "count", "case", "score", "card", "respond", "optimum"}),
    ],
)
def test_what_every_problem_must_say(kind, missing):
    assert kind.__abstractmethods__ == missing
    with pytest.raises(TypeError, match="abstract"):
        kind()
