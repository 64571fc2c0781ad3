"""Levels in task files: what is read, what is refused, and what comes back."""

import pytest
import yaml

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.question import differences, fields, taken
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.data.written_task import written_task
from rehearsal_torch.spaces.box import Alteration

TASK = """
graph: {parents: {drug: [age], dose: [age], ward: [age], well: [age, drug, dose, ward]}}
context: age
box: {drug: {values: [1, 0]}, dose: [0, 10], ward: {values: [1, 2, 4]}}
region: {well: [0.5, null]}
candidates: [[drug, ward], [dose]]
"""


def task(**changes):
    return written_task(yaml.safe_load(TASK) | changes)


def test_levels_are_read_in_order_and_written_again():
    made = task()
    assert made.box.levels == {"drug": (0.0, 1.0), "ward": (1.0, 2.0, 4.0)}
    assert made.box.bounds() == {"drug": (0.0, 1.0), "dose": (0.0, 10.0), "ward": (1.0, 4.0)}
    plain = made.to_plain()
    assert plain["box"] == {"drug": {"values": [0, 1]}, "dose": [0, 10], "ward": {"values": [1, 2, 4]}}
    assert RehearsalTask.of(plain).to_plain() == plain
    without = task(box={"drug": [0, 1], "dose": [0, 10], "ward": [1, 4]})
    assert without.box.levels == {}
    assert without.to_plain()["box"] == {"drug": [0, 1], "dose": [0, 10], "ward": [1, 4]}


@pytest.mark.parametrize(
    ("drug", "message"),
    [
        ({"values": []}, "box.drug.values: expected a list of the values that it may be set to; got"),
        ({"values": 1}, "box.drug.values: expected a list of the values that it may be set to; got 1"),
        ({"values": [0, 1, 1]}, "box.drug.values: expected each value once; got [0.0, 1.0, 1.0]: 1 occurs"),
        ({"values": [0, "x"]}, "box.drug.values[1]: expected a number; got 'x': write a number; strings are"),
        ({"values": ["0", "1"]}, "box.drug.values[0]: expected a number; got '0': remove the quotes"),
        (["low", "high"], "box.drug: expected a number; got 'low': write a number; strings are coded"),
        (
            {"values": ["low", "high"]},
            "box.drug.values: expected numbers; got ['low', 'high']: levels are numbers: code them in the "
            "table and in the task, for instance 'low' as 0, 'high' as 1",
        ),
        (
            {"values": ["low", "mid", "high"]},
            "box.drug.values: expected numbers; got ['low', 'mid', 'high']: levels are numbers: code them in "
            "the table and in the task, for instance 'low' as 0, 'mid' as 1, 'high' as 2, in an order that",
        ),
        (
            yaml.safe_load("{values: [yes, no]}"),
            "box.drug.values: expected numbers; got [True, False]: levels are numbers: code them in the "
            "table and in the task, for instance False as 0, True as 1",
        ),
        (
            {"values": list("abcdef")},
            "box.drug.values: expected numbers; got ['a', 'b', 'c', 'd', 'e', 'f']: levels are numbers: code "
            "them in the table and in the task, for instance 'a' as 0, 'b' as 1, 'c' as 2, 'd' as 3, ..., in",
        ),
        ({"values": [0, True]}, "box.drug.values[1]: expected a number; got True"),
        ({"values": [0, float("nan")]}, "box.drug.values[1]: expected a finite number"),
        ({"levels": [0, 1]}, "box.drug.levels: unknown key; there are values"),
        ({"values": list(range(1001))}, "box.drug.values: expected at most 1000 values; got '1001 values'"),
        ([0, 1, 2], "box.drug: expected [lower, upper], two finite numbers; got [0, 1, 2]"),
    ],
)
def test_what_is_no_list_of_values_is_told(drug, message):
    with pytest.raises(TaskError) as told:
        task(box={"drug": drug, "dose": [0, 10], "ward": [1, 4]})
    assert "quotes" in message or not any("remove the quotes" in each for each in told.value.faults)
    assert any(each.startswith(message) for each in told.value.faults), told.value.faults


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ({"drug": {"values": list(range(101))}, "ward": {"values": list(range(100))}}, "10100 .* most 10000"),
        ({"drug": {"values": list(range(257))}, "ward": [0, 1]}, "257 combinations of values beside .* 256"),
    ],
)
def test_too_many_combinations_are_refused(box, message):
    with pytest.raises(TaskError, match=message):
        task(box={"dose": [0, 10]} | box)


def test_a_case_refuses_what_is_no_level():
    made = task()
    case = RehearsalCase("0", {}, made.box.bounds(), levels=made.box.levels)
    case.check(Alteration(("drug", "ward"), made.box.only(("drug", "ward")).lower))
    for name, value in (("drug", 0.5), ("drug", 2.0), ("ward", 3.0)):
        with pytest.raises(ValueError, match=f"{name} may be set to .*take one of these"):
            case.check(Alteration((name,), made.box.lower.new_tensor([value])))
    with pytest.raises(ValueError, match="may be set within"):
        case.check(Alteration(("dose",), made.box.lower.new_tensor([12.0])))
    with pytest.raises(ValueError, match=r"drug has the levels .*expected some, within the range"):
        RehearsalCase("0", {}, {"drug": (0.0, 1.0)}, levels={"drug": (0.0, 2.0)})


def test_levels_belong_to_the_question_and_are_replaced_like_bounds():
    fitted = task(box={"drug": [0, 1], "dose": [0, 10], "ward": [1, 4]})
    assert fields(task())["levels"] == {"drug in {0, 1}", "ward in {1, 2, 4}"}
    assert fields(fitted)["levels"] == frozenset()
    used = ("graph", "actions", "context", "outcomes", "region", "candidates")
    assert differences(fitted, task(), used) == []
    assert taken(fitted, task(), used).box.levels == task().box.levels
    assert differences(fitted, task(), (*used, "levels")) == [
        "levels: it was fitted with nothing in their place, and is used with "
        "[drug in {0, 1}; ward in {1, 2, 4}]"
    ]
