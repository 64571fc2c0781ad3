"""Causal tasks: roles that must fit together, rewards that are known, rows that can be learnt from."""

import math

import pytest
import torch
import yaml

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.typed_settings import outside_bounds, tolerances

PLAIN = {
    "graph": {"parents": {"X": ["a", "b"], "Y": ["X", "b"], "W": ["X"]}},
    "actions": {"a": [0, 1], "b": [-1, 2]},
    "reward": "Y",
}


@pytest.fixture
def task():
    return CausalTask.of(PLAIN)


def rows(count=6, **columns):
    values = torch.rand(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    names = ("a", "b", "X", "Y")
    for name, value in columns.items():
        values[:, names.index(name)] = value
    return Table.observed(names, values)


def test_only_what_reaches_the_reward_is_modelled(task):
    assert task.nodes == ("X", "Y")
    assert task.inputs("X") == ("a", "b")
    assert set(task.inputs("Y")) == {"X", "b"}


def test_plain_data_gives_the_task_back(task):
    again = CausalTask.of(yaml.safe_load(yaml.safe_dump(task.to_plain())))
    assert again.to_plain() == task.to_plain()
    limited = CausalTask.of(
        {
            **PLAIN,
            "limits": {"normals": [[1.0, 1.0]], "offsets": [1.5]},
            "reward": {"targets": {"Y": 2}, "mean": False},
        }
    )
    assert CausalTask.of(limited.to_plain()).to_plain() == limited.to_plain()


def test_a_flattened_task_forgets_the_structure(task):
    flat = task.flattened()
    assert flat.nodes == ("Y",)
    assert set(flat.inputs("Y")) == {"a", "b"}


def outside(task, table):
    return outside_bounds(task, {f"row {n}": row for n, row in enumerate(task.settings_of(table.records()))})


def test_rows_outside_are_named_and_learnt_from(task):
    table = rows()
    assert outside(task, table) == ()
    far = Table(
        table.names,
        torch.cat([table.values[:5], table.values[5:] + torch.tensor([[1.5, 0.0, 0.0, 0.0]])]),
        table.altered,
    )
    task.check(far)
    (sentence,) = outside(task, far)
    assert sentence.startswith("row 5: a may be set within [0, 1]; got")


def test_the_reward_is_that_of_the_rows(task):
    table = rows()
    assert torch.equal(task.reward_of(table), table.columns(("Y",))[:, 0])


LEVELLED = {**PLAIN, "actions": {"a": {"values": [1, 0, 0.3]}, "b": [-1, 2]}}


def test_actions_have_levels_as_in_a_rehearsal_task():
    task = CausalTask.of(LEVELLED)
    assert task.box.levels == {"a": (0.0, 0.3, 1.0)}
    assert task.to_plain()["actions"] == {"a": {"values": [0.0, 0.3, 1.0]}, "b": [-1.0, 2.0]}
    assert CausalTask.of(yaml.safe_load(yaml.safe_dump(task.to_plain()))).to_plain() == task.to_plain()
    assert task.flattened().box.levels == task.box.levels


LOGGED = {**PLAIN, "actions": {"a": {"range": [0.001, 10], "scale": "log"}, "b": [-1, 2]}}


def test_a_log_scale_counts_in_distances_and_is_kept_in_plain_data():
    task = CausalTask.of({**LOGGED, "graph": "a -> Y; b -> Y; c -> Y", "context": {"c": {"scale": "log"}}})
    assert CausalTask.of(yaml.safe_load(yaml.safe_dump(task.to_plain()))) == task
    assert task.logs == ("a", "c")
    apart = task.coordinates(torch.tensor([0.1, 1.0, 1.0])) - task.coordinates(
        torch.tensor([0.01, 1.0, 10.0])
    )
    assert apart.tolist() == pytest.approx([math.log(10), 0.0, -math.log(10)])
    # A hundredth of four decades, and two percent of a value.
    assert tolerances(task, 0.01)[0] == pytest.approx(0.01 * math.log(10_000))
    assert tolerances(task, {"a": 0.02})[0] == pytest.approx(math.log(1.02))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"actions": {"a": {"range": [0, 1], "scale": "log"}, "b": [0, 1]}}, "actions.a.scale: a log scale"),
        ({"actions": {"a": {"range": [1, 2], "scale": "lgo"}, "b": [0, 1]}}, "did you mean 'log'"),
        ({"limits": {"normals": [[1, 1]], "offsets": [2]}}, "limits are linear, and a has scale: log"),
    ],
)
def test_what_a_log_scale_cannot_be_is_refused(change, words):
    with pytest.raises(TaskError, match=words):
        CausalTask.of({**LOGGED, **change})
    with pytest.raises(ValueError, match="above 0, since its scale is log; got 0"):
        CausalTask.of(LOGGED).held({"a": 0})


def test_rows_at_none_of_the_levels_are_history():
    task = CausalTask.of(LEVELLED)
    table = rows(a=torch.tensor([0.0, 0.3, 1.0, 0.5, 0.3, 0.0], dtype=torch.float64))
    task.check(table)
    assert outside(task, table) == (
        "row 3: a may be set to 0, 0.3, 1; got 0.5: take one of these, or offer the value in the task",
    )


def test_fixed_actions_are_held_at_their_value():
    task = CausalTask.of({**LEVELLED, "limits": {"normals": [[1.0, 1.0]], "offsets": [1.5]}})
    assert task.held(None) == task.held({}) == {}
    assert task.held({"b": torch.tensor(0.25)}) == {"b": (0.25,)}
    assert task.held({"b": 1.0, "a": 0.3 + 1e-8}) == {"a": (0.3,), "b": (1.0,)}
    assert task.held({"b": 2 + 1e-8, "a": -1e-9} | {"b": 1.5}) == {"a": (0.0,), "b": (1.5,)}
    region = task.region(task.held({"b": 1.3}))
    # a + 1.3 <= 1.5 leaves a = 0.
    assert region.units(region.spread(8, 0)).unique(dim=0).tolist() == [[0.0, 1.3]]


def test_five_rows_with_values_up_to_the_largest_are_enough(task):
    task.check(rows(5))
    task.check(rows(a=torch.tensor([1e150, 0, 0, 0, 0, 0], dtype=torch.float64)))
    # An action may be the same in all rows.
    task.check(rows(a=0.5))


def table(values, altered=()):
    made = torch.tensor(values, dtype=torch.float64)
    marks = torch.zeros_like(made, dtype=torch.bool)
    for row, column in altered:
        marks[row, column] = True
    return Table(("a", "X", "Y"), made, marks)


NAN = float("nan")
ROWS = [[0.1 * place, place % 3, place**2] for place in range(6)]


@pytest.mark.parametrize(
    ("made", "lacking"),
    [
        (table(ROWS), ""),
        (table(ROWS[:5]), ""),
        (table(ROWS[:1]), "a model needs 5 completed experiments, and there is 1"),
        (table(ROWS[:4]), "a model needs 5 completed experiments, and there are 4"),
        # Rows in which a node was set by hand say nothing of its law.
        (table(ROWS, [(0, 2)]), ""),
        (
            table(ROWS, [(row, 2) for row in range(4)]),
            "a model needs 3 completed experiments, and there are 2 in which Y was not set, and it and its "
            "causes were measured",
        ),
        # A row in which a node was not measured says nothing of its law, nor of what it acts on.
        (table([*ROWS[:5], [0.5, NAN, 1.0]]), ""),
        (
            table([*ROWS[:2], *[[0.1 * row, NAN, row] for row in range(3)]]),
            "a model needs 3 completed experiments, and there are 2 in which X was not set, and it and its "
            "causes were measured",
        ),
        (table([[row[0], 2.0, row[2]] for row in ROWS]), "X was 2 in all 6 experiments"),
        (table([[row[0], *row[1:2], 0.0] for row in ROWS]), "Y was 0 in all 6 experiments"),
        (
            table([[row[0], 2.0 + (place == 0), row[2]] for place, row in enumerate(ROWS)], [(0, 1)]),
            "X was 2 in all 5 experiments",
        ),
        (table([[0.5, *row[1:]] for row in ROWS]), "all 6 experiments were run at the same setting"),
    ],
)
def test_what_a_table_lacks_for_a_model(made, lacking):
    task = CausalTask.of({"graph": ["a -> X", "X -> Y"], "actions": {"a": [0, 1]}, "reward": "Y"})
    assert task.lacking(made.records()) == lacking


def test_a_table_with_gaps_is_enough_if_every_node_was_measured_often_enough(task):
    gaps = rows(7)
    gaps.values[3, 2] = torch.nan
    task.check(gaps)
    gaps.values[:5, 2] = torch.nan
    with pytest.raises(ValueError, match=r"no model .* yet: a model needs 3 .* 2 in which X was not set"):
        task.check(gaps)
    gaps.values[3:, 2] = torch.inf
    with pytest.raises(ValueError, match="X: 4 of 7 values are missing or infinite"):
        task.check(gaps)
    reward = rows(7)
    reward.values[3, 3] = torch.nan
    task.check(reward)
    reward.values[:5, 3] = torch.nan
    with pytest.raises(ValueError, match="2 in which Y was not set"):
        task.check(reward)


def test_a_task_is_itself_and_a_flattened_one_keeps_its_limits():
    limited = CausalTask.of({**PLAIN, "limits": {"normals": [[1.0, 1.0]], "offsets": [1.5]}})
    assert CausalTask.of(limited) is limited
    assert limited.flattened().limits is limited.limits
    assert limited.flattened().actions == limited.actions
