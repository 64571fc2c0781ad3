"""Costs as tasks write them: every form, read back, and faults with what was expected."""

import pytest

from rehearsal_torch.data.costs.action_cost import ActionCost
from rehearsal_torch.data.rehearsal_task import RehearsalTask

TASK = {
    "graph": ["x -> a", "{x a b} -> y"],
    "context": ["x"],
    "box": {"a": [0, 1], "b": [0, 1]},
    "region": "y >= 0",
}


def task(**parts):
    return RehearsalTask.of({**TASK, **parts})


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (2, ActionCost(2.0, 2.0)),
        (0, ActionCost()),
        ({"up": 2, "down": 0.5, "fixed": 10}, ActionCost(2.0, 0.5, 10.0)),
        ({"up": 2, "usual": 0.25}, ActionCost(2.0, usual=0.25)),
        ({"column": "price", "fixed": 1}, ActionCost(fixed=1.0, column="price")),
    ],
)
def test_every_form_is_read_and_read_back(written, made):
    found = task(costs={"a": written}, worth=1e3)
    assert found.costs == {"a": made}
    assert found.worth == 1000.0
    again = RehearsalTask.of(found.to_plain())
    assert (again.costs, again.worth) == (found.costs, found.worth)
    assert again.to_plain() == found.to_plain()


OF_CLASSES = {
    "graph": ["{ward a answer} -> y"],
    "context": [],
    "box": {"ward": {"values": ["A", "B"]}, "answer": {"values": ["no", "yes"]}, "a": {"values": [0, 1, 2]}},
    "region": "y >= 0",
    "codings": {"ward": {"classes": ["A", "B", "C"], "reference": "A"}, "answer": ["no", "yes"]},
}


@pytest.mark.parametrize(
    ("costs", "plain"),
    [
        ({"ward": {"A": 0, "B": 12}}, {"levels": {"A": 0.0, "B": 12.0}}),
        (
            {"ward": {"levels": {"A": 0, "B": 12, "C": 3}, "fixed": 5, "usual": "C"}},
            {"fixed": 5.0, "levels": {"A": 0.0, "B": 12.0, "C": 3.0}, "usual": "C"},
        ),
        ({"ward": {"fixed": 5}}, {"fixed": 5.0, "levels": {"A": 0.0, "B": 0.0, "C": 0.0}}),
        ({"answer": {True: 3, False: 0}}, {"levels": {"no": 0.0, "yes": 3.0}}),
        ({"answer": {"up": 3, "usual": "yes"}}, {"up": 3.0, "usual": 1.0}),
        ({"a": {0: 1, 1: 2, 2: 0}}, {"levels": {"0": 1.0, "1": 2.0, "2": 0.0}}),
    ],
)
def test_costs_of_levels_are_read_and_read_back(costs, plain):
    found = RehearsalTask.of(OF_CLASSES | {"costs": costs, "worth": 10})
    assert found.to_plain()["costs"] == {next(iter(costs)): plain}
    again = RehearsalTask.of(found.to_plain())
    assert (again.costs, again.to_plain()) == (found.costs, found.to_plain())
