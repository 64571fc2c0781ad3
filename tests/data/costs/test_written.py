"""Costs as tasks write them: every form, read back, and faults with what was expected."""

import pytest

from rehearsal_torch.data.costs.action_cost import ActionCost
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import TaskError

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


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"ward": 2}, "costs.ward: a change from one class to another has no size that a cost per unit"),
        ({"ward": {"column": "price"}}, "costs.ward: a change from one class to another has no size"),
        ({"ward": {"A": 0}}, "costs.ward: no price of B, which may be set"),
        ({"ward": {"A": -1, "B": 0}}, "costs.ward.levels.A: expected a cost of at least 0; got -1"),
        ({"ward": {"fixed": 1, "usual": "D"}}, "costs.ward: usual: expected one of A, B, C; got 'D'"),
        ({"wrd": {"A": 0}}, "costs: 'wrd' is no action; did you mean 'ward'?"),
        ({"a": {"levels": {0: 1, 1: 2, 2: 0}, "up": 1}}, "leave one of the two out"),
        ({"a": {"up": 1, "usual": "none"}}, "costs.a: usual: expected a number; got 'none': a has numbers"),
    ],
)
def test_faults_of_costs_of_levels(costs, words):
    with pytest.raises(TaskError) as told:
        RehearsalTask.of(OF_CLASSES | {"costs": costs, "worth": 10})
    assert words in str(told.value)


def test_a_task_without_costs_is_written_as_before():
    assert {"costs", "worth"}.isdisjoint(task().to_plain())


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"costs": {"a": -1}}, "costs.a: expected a cost of at least 0; got -1"),
        ({"costs": {"c": 1}}, "costs: 'c' is no action; there are a, b"),
        ({"costs": {"x": 1}}, "costs: 'x' is no action; there are a, b"),
        ({"costs": {"a": {"upp": 1}}}, "'upp': unknown key; did you mean 'up'?"),
        ({"costs": {"a": {"up": 1, "column": "p"}}}, "leave one of the two out"),
        ({"costs": {"a": {"usual": 1}}}, "expected a cost per unit of change"),
        (
            {"costs": {"a": "two"}},
            "costs.a: expected a number of at least 0, or {up: 2, down: 0.5}; got 'two'",
        ),
        ({"worth": 0}, "worth: expected what a desired outcome is worth"),
    ],
)
def test_faults(parts, words):
    with pytest.raises(TaskError) as told:
        task(**parts)
    assert words in str(told.value)
