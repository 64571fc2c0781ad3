"""Present values of actions: read from cases, and what is assumed where they are not used."""

import pandas as pd

from rehearsal_torch.data.tables.cases import assumed_usual, present_in
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from tests.toys.linear_truth import chain, managing


def test_empty_cells_and_columns_that_are_not_there_are_unknown():
    frame = pd.DataFrame({"a": [1, None], "y": ["text", "more"]})
    assert present_in(frame, "cases.csv", ("a", "m")) == [{"a": 1.0}, {}]
    assert present_in(frame, "cases.csv", ()) == [{}, {}]


def test_an_action_that_no_set_holds_is_said_to_be_usual():
    single = managing(candidates=(("raw_cost",), ("self_pricing",))).task
    known = [{"raw_cost": 1.0}, {"self_pricing": 2.0}]
    said = assumed_usual(single, known)
    # self_pricing follows raw_cost, and is changed with it.
    assert "not its present value: raw_cost where only self_pricing is set; offer" in said
    assert assumed_usual(managing().task, known) == ""
    assert assumed_usual(single, [{"self_pricing": 2.0}]) == ""
    assert assumed_usual(chain().task, [{"a": 0.1, "m": 0.2}]) == ""


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
    told = RehearsalTable(rows, world.task.to_plain(), cases)
    assert told.facts().notes[-1] == told.findings()[-1].text == told.card()["findings"][-1]["text"]
    assert "raw_cost where only self_pricing is set" in told.facts().notes[-1]
