"""Levels in task files: what is read, what is refused, and what comes back."""

import pytest
import yaml

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.question import differences, fields, taken
from rehearsal_torch.data.rehearsal_task import RehearsalTask
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
