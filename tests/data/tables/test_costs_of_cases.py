"""Costs of each case from a column, with faults by line; usual values from the rows."""

import pandas as pd
import torch

from rehearsal_torch.data.costs import ActionCost
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.cases import costs_in, with_usual

COSTS = {"a": ActionCost(column="price"), "b": ActionCost(2.0, 2.0)}


def test_each_case_has_the_cost_of_its_row():
    frame = pd.DataFrame({"x": [0, 1], "price": [3.0, 0.0]})
    assert costs_in(frame, "cases.csv", COSTS) == [{"a": 3.0}, {"a": 0.0}]
    assert costs_in(frame, "cases.csv", {"b": COSTS["b"]}) == [{}, {}]


def test_the_usual_value_is_the_median_or_the_most_frequent_level():
    task = RehearsalTask.of(
        {
            "graph": ["{a b} -> y"],
            "context": [],
            "box": {"a": [0, 9], "b": {"values": [0, 1, 2]}},
            "region": "y >= 0",
            "costs": {"a": 1, "b": 1},
        }
    )
    rows = torch.tensor([[1.0, 0, 0], [2.0, 2, 0], [7.0, 2, 0]], dtype=torch.float64)
    found = with_usual(task, Table.observed(("a", "b", "y"), rows))
    assert {name: each.usual for name, each in found.costs.items()} == {"a": 2.0, "b": 2.0}
    assert with_usual(found, Table.observed(("a", "b", "y"), rows + 1)) is found


def test_the_usual_class_is_that_of_most_rows():
    task = RehearsalTask.of(
        {
            "graph": ["w -> y"],
            "context": [],
            "box": {"w": {"values": ["A", "B", "C"]}},
            "region": "y >= 0",
            "codings": {"w": {"classes": ["A", "B", "C"], "reference": "A"}},
            "costs": {"w": {"A": 1, "B": 2, "C": 3}},
        }
    )
    # A, B, B, C, C, C: in each column most rows have 0.
    rows = torch.tensor([[0.0, 0, 0]] + [[1.0, 0, 0]] * 2 + [[0.0, 1, 0]] * 3, dtype=torch.float64)
    found = with_usual(task, Table.observed(("w=B", "w=C", "y"), rows))
    assert found.to_plain()["costs"]["w"]["usual"] == "C"
