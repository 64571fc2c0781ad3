"""Rehearsal tasks: who may play which part, plain data, and tables that nothing can be learnt from."""

import json

import pytest
import torch
from omegaconf import OmegaConf

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {"u": ["x"], "a": ["x", "u"], "b": ["a"], "y": ["a", "b", "u"]}
PLAIN = {
    "graph": {"parents": PARENTS},
    "context": ["x"],
    "box": {"a": [-1, 1], "b": [0, 2]},
    "region": {"y": [None, 1.5]},
}


def changed(**parts):
    return {**PLAIN, **parts}


def table(**columns):
    values = torch.randn(20, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name, column in columns.items():
        values[:, ["x", "u", "a", "b", "y"].index(name)] = torch.as_tensor(column, dtype=torch.float64)
    return Table.observed(("x", "u", "a", "b", "y"), values)


@pytest.mark.parametrize(
    "task",
    [
        RehearsalTask.of(changed(candidates=[["b", "a"]])),
        RehearsalTask(
            RehearsalGraph.of({"p": ("x",), "y": ("p",), "w": ("q",)}, [("p", "q")]),
            ("x",),
            Box.of({"p": (0, 1)}),
            Polytope(
                ("y", "w"),
                torch.tensor([[1.0, 2.0], [-1.0, 0.5], [0.3, -1.0]]),
                torch.tensor([1.0, 2.0, 0.1]),
            ),
        ),
    ],
)
def test_plain_data_give_the_task_back(task):
    plain = task.to_plain()
    assert json.loads(json.dumps(plain)) == plain
    for again in (
        RehearsalTask.of(plain),
        RehearsalTask.of(OmegaConf.create(plain)),
        RehearsalTask.of(json.loads(json.dumps(plain))),
    ):
        assert again.to_plain() == plain
        assert again.graph == task.graph
        assert torch.equal(again.region.normals, task.region.normals)
        assert torch.equal(again.region.offsets, task.region.offsets)


def test_a_table_to_learn_from_is_accepted():
    task = RehearsalTask.of(PLAIN)
    task.check(table())
    whole = table()
    more = Table.observed(
        (*whole.names, "z"),
        torch.cat([whole.values, torch.full((20, 1), torch.nan, dtype=torch.float64)], -1),
    )
    task.check(more)  # a column that is no part of the task may hold anything


def test_actions_that_are_left_alone_are_neither_set_nor_moved_and_still_matter():
    # x -> a -> m -> y, and b -> y.
    graph = {"parents": {"a": ["x"], "m": ["a"], "y": ["m", "b", "x"]}}
    box = {"a": [-1, 1], "m": [-1, 1], "b": [-1, 1]}
    task = RehearsalTask.of({"graph": graph, "context": ["x"], "box": box, "region": {"y": [0, None]}})
    assert task.left_alone(("a",), ("a", "m", "b")) == ("b",)
    # a acts through m alone, which is set.
    assert task.left_alone(("m",), ("a", "b")) == ("b",)
    assert task.left_alone(("b",), ("a", "m")) == ("a", "m")
    assert task.left_alone(("b",), ()) == ()
