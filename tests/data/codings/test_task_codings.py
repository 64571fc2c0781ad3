"""Tasks with texts in place of codes, and graphs with indicators."""

from itertools import combinations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.task_codings import expanded, levels_in
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.problem_file.task_file import region_in
from rehearsal_torch.data.rehearsal_task import RehearsalTask, task_of
from rehearsal_torch.data.task_compatibility import differences, fingerprint
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment, c_separated

WARD = {"w": Coding("w", ("A", "B", "C"), "A")}
TASK = {
    "graph": ["{ward age} -> {smoker severity}", "smoker -> severity"],
    "context": ["ward", "age"],
    "box": {"smoker": {"values": ["no", "yes"]}},
    "region": "severity <= medium",
    "codings": {
        "smoker": ["no", "yes"],
        "severity": ["low", "medium", "high"],
        "ward": {"classes": ["A", "B", "C"], "reference": "A"},
    },
}


def test_a_written_task_is_read_back():
    task = RehearsalTask.of(TASK)
    again = RehearsalTask.of(task.to_plain())
    assert again.to_plain() == task.to_plain()
    assert again.codings == task.codings
    assert fingerprint(again) == fingerprint(task)


def test_codes_of_levels_that_are_numbers_are_not_taken_for_levels():
    plain = {
        **TASK,
        "codings": {**TASK["codings"], "smoker": ["1", "2", "3+"]},
        "box": {"smoker": {"values": [2, "3+"]}},
    }
    task = RehearsalTask.of(plain)
    assert task.box.levels == {"smoker": (1.0, 2.0)}
    assert RehearsalTask.of(task.to_plain()).box.levels == {"smoker": (1.0, 2.0)}


def test_rows_say_levels_and_references():
    rows = pd.DataFrame({"ward": list("ABBC"), "smoker": list("ynyn"), "b": ["No", "Yes", "No", "No"]})
    codings = {"ward": "categorical", "smoker": "binary", "b": [False, True], "c": ["x", "y"]}
    plain = {"graph": ["{ward b c smoker} -> y"], "context": ["ward", "b", "c"], "codings": codings}
    plain |= {"box": {"smoker": {"values": ["n", "y"]}}, "region": "y >= 0"}
    levels = {name: coding.levels for name, coding in task_of(plain, rows=rows).coded.items()}
    assert levels == {"ward": ("B", "A", "C"), "smoker": ("n", "y"), "b": ("No", "Yes"), "c": ("x", "y")}
    codings["ward"] = {"classes": ["C", "B", "A"]}
    assert task_of(plain, rows=rows).coded["ward"] == Coding("ward", ("C", "B", "A"), "B")
    codings["ward"] = "binary"
    with pytest.raises(TaskError, match=r"codings.ward: expected two texts; got 3, A, B, C"):
        task_of(plain, rows=rows)
    assert levels_in(pd.Series([10, 9, None, "x"], dtype=object)) == ["9", "10", "x"]


@st.composite
def graphs(draw):
    names = ["p", "w", "q", "a", "y"]
    order = draw(st.permutations(names))
    arrows = [pair for pair in combinations(order, 2) if draw(st.booleans())]
    bow = draw(st.sampled_from([None, *arrows])) if arrows else None
    return RehearsalGraph.mixed(names, arrows, [] if bow is None else [bow])


@settings(max_examples=60)
@given(graphs(), st.data())
def test_separations_stay_what_they_were(graph, data):
    made = expanded(graph, WARD)
    one, other = data.draw(st.permutations([name for name in graph.names if name != "w"]))[:2]
    known = [name for name in graph.names if name not in (one, other) and data.draw(st.booleans())]
    coded = [column for name in known for column in (WARD["w"].columns if name == "w" else (name,))]
    if not graph.hidden:
        assert c_separated(graph, one, other, known) == c_separated(made, one, other, coded)
    if {"a", "y", "w"} - set(known) == {"a", "y"}:
        before, after = (
            adjustment(each, context, ["a"], ["y"]) for each, context in ((graph, known), (made, coded))
        )
        assert bool(before.reasons) == bool(after.reasons)
        assert set(before.before) == set(after.before)


@pytest.mark.slow
@settings(max_examples=200)
@given(graphs(), st.data())
def test_a_class_that_is_set_is_adjusted_for_as_its_variable(graph, data):
    made = expanded(graph, WARD)
    altered = data.draw(st.sampled_from([["w"], ["w", "a"], ["a", "w"]]))
    known = [name for name in graph.names if name not in (*altered, "y") and data.draw(st.booleans())]
    columns = [column for name in altered for column in (WARD["w"].columns if name == "w" else (name,))]
    before, after = adjustment(graph, known, altered, ["y"]), adjustment(made, known, columns, ["y"])
    assert bool(before.reasons) == bool(after.reasons)
    assert (set(before.before), set(before.between)) == (set(after.before), set(after.between))
    first = {column for name in before.first for column in (WARD["w"].columns if name == "w" else (name,))}
    assert first == set(after.first)


def test_an_action_of_classes_is_set_as_a_whole():
    plain = {
        **TASK,
        "context": ["age"],
        "graph": ["age -> {ward smoker severity}", "ward -> smoker -> severity"],
        "box": {"ward": {"values": ["C", "B", "A"]}, "smoker": {"values": ["no", "yes"]}},
        "candidates": [["ward", "smoker"], ["smoker"]],
    }
    task = RehearsalTask.of(plain)
    assert task.box.levels == {"ward=B": (0.0, 1.0), "ward=C": (0.0, 1.0), "smoker": (0.0, 1.0)}
    assert task.candidates == (("ward=B", "ward=C", "smoker"), ("smoker",))
    assert RehearsalTask.of({**plain, "candidates": []}).candidates == (("ward=B", "ward=C"), ("smoker",))
    assert task.to_plain()["candidates"] == [["ward", "smoker"], ["smoker"]]
    assert task.to_plain()["box"] == {
        "ward": {"values": ["A", "B", "C"]},
        "smoker": {"values": ["no", "yes"]},
    }
    again = RehearsalTask.of(task.to_plain())
    assert (again.to_plain(), fingerprint(again)) == (task.to_plain(), fingerprint(task))


STATUS = Coding("status", ("well", "mild", "ill"), "ill")
CODINGS = {"status": STATUS, "grade": Coding("grade", ("low", "high"))}
OF_CLASSES = {
    "graph": ["x -> {a status cost}", "a -> {status cost}"],
    "context": ["x"],
    "box": {"a": [0, 1]},
    "region": "status in {mild, well} and cost <= 4",
    "codings": {"status": {"classes": ["well", "mild", "ill"], "reference": "ill"}},
}


def test_an_outcome_of_classes_is_one_column_of_what_is_desired():
    task = RehearsalTask.of(OF_CLASSES)
    assert task.outcomes == ("status", "cost")
    assert task.region.normals.tolist() == [[-1.0, 0.0], [0.0, 1.0]]
    assert task.region.offsets.tolist() == [-0.5, 4.0]
    assert task.codings == (Coding("status", STATUS.levels, None, ("well", "mild")),)
    assert task.coded["status"].rows.tolist() == [[1.0], [1.0], [0.0]]
    assert task.worded({"status": 1.0}) == {"status": "well or mild"}
    assert task.graph.names == ("x", "a", "status", "cost")


def test_a_written_task_is_read_back_and_asks_for_its_own_classes():
    task = RehearsalTask.of(OF_CLASSES)
    again = RehearsalTask.of(task.to_plain())
    assert again.to_plain() == task.to_plain()
    assert fingerprint(again) == fingerprint(task)
    other = RehearsalTask.of({**OF_CLASSES, "region": "status = well and cost <= 4"})
    assert fingerprint(other) != fingerprint(task)
    (told,) = differences(task, other, ["graph"])
    assert "well or mild = 1, ill = 0" in told


def test_codings_learn_what_is_desired_where_the_region_can_be_read():
    faults = []
    region, found = region_in(["status = ill", "grade = high"], CODINGS, faults)
    assert found == {**CODINGS, "status": Coding("status", STATUS.levels, None, ("ill",))}
    assert (region.names, region.limits.tolist(), faults) == (("status", "grade"), [-0.5, -0.5], [])
    for place, written in enumerate(({"status": [0.5, None]}, "status in {}")):
        assert region_in(written, CODINGS, faults) == (None, CODINGS)
        assert [each.path for each in faults] == ["region"] * (place + 1)
