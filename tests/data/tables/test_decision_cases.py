"""Present values of actions: read from cases, and what is assumed where they are not used."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.costs import ActionCost
from rehearsal_torch.data.records import Records
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.decision_cases import cases_in_codes, parted, with_usual
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from tests.data.codings.test_task_codings import TASK
from tests.toys.linear_truth import chain, managing


def test_cases_of_a_table_have_them_and_its_held_out_rows_have_not():
    world = chain()
    rows = pd.DataFrame(world.draw(60), columns=list(world.names))
    task = world.task.to_plain()
    cases = pd.DataFrame({"x": [0.1, 0.2], "a": [0.3, None]})
    table = RehearsalTable(rows, task, cases)
    assert [table.case(place).present for place in range(2)] == [{"a": 0.3}, {}]
    assert table.case(0).facts()["present"] == {"a": 0.3}
    assert "present" not in table.case(1).facts()
    assert RehearsalTable(rows, task, cases, present=False).case(0).present == {}
    assert RehearsalTable(rows, task).case(0).present == {}


def test_what_is_assumed_is_a_note_and_a_caution():
    world = managing(candidates=(("raw_cost",), ("self_pricing",)))
    rows = pd.DataFrame(world.draw(60), columns=list(world.names))
    cases = pd.DataFrame({"cf": [0.1], "ei": [0.2], "raw_cost": [1.0]})
    plain = world.task.to_plain()
    held = RehearsalTable(rows, plain, cases)
    assert held.task.holding == (("raw_cost", "self_pricing"),)
    assert held.task.offered == world.task.candidates
    assert RehearsalTask.of(held.task.to_plain()).holding == held.task.holding
    # A hidden cause of raw_cost and profit: no adjustment tells what holding it does.
    graph = plain["graph"] | {"hidden": [["raw_cost", "profit"]]}
    told = RehearsalTable(rows, plain | {"graph": graph}, cases)
    assert told.task.holding == ()
    assert told.facts().notes[-1] == told.findings()[-1].text == told.card()["findings"][-1]["text"]
    assert "raw_cost where only self_pricing is set" in told.facts().notes[-1]


def test_the_context_is_needed_and_present_values_are_not():
    task = RehearsalTask.of(TASK)
    found = cases_in_codes(pd.DataFrame({"ward": ["C", "A"], "age": [1, 2]}), "the cases", task)
    assert found[["ward=B", "ward=C"]].to_numpy().tolist() == [[0, 1], [0, 0]]
    with pytest.raises(TableError) as told:
        cases_in_codes(pd.DataFrame({"smoker": ["no", "maybe"]}), "the cases", task)
    assert str(told.value).splitlines() == [
        "the cases: 2 faults, nothing was decided",
        "- smoker: expected one of no, yes; got 'maybe' in line 3: no row to learn from has it, so that "
        "nothing is known of it: correct it, or leave the case out",
        "- no column 'ward'; there are smoker",
    ]


COSTS = {"a": ActionCost(column="price"), "b": ActionCost(2.0, 2.0)}


def test_the_usual_value_is_the_median_or_the_most_frequent_level_or_class():
    plain = {"graph": ["{a b w} -> y"], "context": [], "region": "y >= 0"}
    box = {"a": [0, 9], "b": {"values": [0, 1, 2]}, "w": {"values": ["A", "B", "C"]}}
    costs = {"a": 1, "b": 1, "w": {"A": 1, "B": 2, "C": 3}}
    codings = {"w": {"classes": ["A", "B", "C"], "reference": "A"}}
    task = RehearsalTask.of({**plain, "box": box, "costs": costs, "codings": codings})
    # A, B, B, C, C, C: in each column most rows have 0.
    classes = np.array([[0.0, 0]] + [[1.0, 0]] * 2 + [[0.0, 1]] * 3)
    numbers = np.array([[1.0, 0], [2.0, 2], [2.0, 2], [2.0, 2], [7.0, 1], [8.0, 0]])
    rows = Records(("a", "b", "w=B", "w=C", "y"), np.hstack([numbers, classes, np.zeros((6, 1))]))
    found = with_usual(task, rows)
    assert {name: each["usual"] for name, each in found.to_plain()["costs"].items()} == {
        "a": 2.0, "b": 2.0, "w": "C"
    }  # fmt: skip
    assert with_usual(found, rows) is found


EVERY = np.ones(100, dtype=bool)
FILE = np.arange(100)


def test_a_fifth_is_held_out_unless_cases_are_elsewhere():
    past, held = parted(EVERY, None, "random", 0, False, None, FILE)
    assert len(held) == 20
    assert sorted(past + held) == list(range(100))
    assert held == sorted(held)
    assert parted(EVERY, None, "random", 0, False, None, FILE)[1] == held
    assert parted(EVERY, None, "random", 1, False, None, FILE)[1] != held
    assert parted(EVERY, None, "random", 0, True, None, FILE) == (list(range(100)), [])
    assert parted(EVERY, 0.3, "last", 0, False, None, FILE)[1] == list(range(70, 100))


def test_only_complete_rows_are_held_out_and_all_others_learnt_from():
    complete = np.arange(100) % 4 != 0
    past, held = parted(complete, 0.4, "random", 0, False, None, FILE)
    assert len(held) == 30
    assert all(complete[held])
    assert sorted(past + held) == list(range(100))
    assert parted(complete, 0.2, "last", 0, False, None, FILE)[1][-1] == 99


def test_units_are_held_out_as_a_whole_with_their_incomplete_rows():
    complete, units = np.arange(100) % 10 != 3, [f"u{row // 10}" for row in range(100)]
    past, held = parted(complete, 0.2, "random", 0, False, units, FILE)
    away = {units[place] for place in held}
    assert len(away) == 2
    assert len(held) == 18
    assert not away & {units[place] for place in past}
    assert len(past) == 80


@pytest.mark.parametrize("kept", ["random", "last"])
def test_rows_to_learn_from_come_in_the_given_order_and_cases_in_the_files(kept):
    order = np.arange(100)[::-1]
    past, held = parted(EVERY, 0.2, kept, 0, False, None, order)
    assert past == sorted(past, reverse=True)
    assert held == sorted(held)
    drawn = {99 - place for place in parted(EVERY, 0.2, kept, 0, False, None, FILE)[1]}
    assert set(held) == (drawn if kept == "random" else set(range(80, 100)))
