"""Outcomes of classes, and the faces of regions that name them."""

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.outcomes import (
    levels_of,
    unordered_of,
    with_desired,
)
from rehearsal_torch.data.question import differences, fingerprint
from rehearsal_torch.data.rehearsal_task import RehearsalTask

STATUS = Coding("status", ("well", "mild", "ill"), "ill")
CODINGS = {"status": STATUS, "grade": Coding("grade", ("low", "high"))}
TASK = {
    "graph": ["x -> {a status cost}", "a -> {status cost}"],
    "context": ["x"],
    "box": {"a": [0, 1]},
    "region": "status in {mild, well} and cost <= 4",
    "codings": {"status": {"classes": ["well", "mild", "ill"], "reference": "ill"}},
}


def test_an_outcome_of_classes_is_one_column_of_what_is_desired():
    task = RehearsalTask.of(TASK)
    assert task.outcomes == ("status", "cost")
    assert task.region.normals.tolist() == [[-1.0, 0.0], [0.0, 1.0]]
    assert task.region.offsets.tolist() == [-0.5, 4.0]
    assert task.codings == (Coding("status", STATUS.levels, None, ("well", "mild")),)
    assert task.coded["status"].rows.tolist() == [[1.0], [1.0], [0.0]]
    assert task.worded({"status": 1.0}) == {"status": "well or mild"}
    assert task.graph.names == ("x", "a", "status", "cost")


def test_a_written_task_is_read_back_and_asks_for_its_own_classes():
    task = RehearsalTask.of(TASK)
    again = RehearsalTask.of(task.to_plain())
    assert again.to_plain() == task.to_plain()
    assert fingerprint(again) == fingerprint(task)
    other = RehearsalTask.of({**TASK, "region": "status = well and cost <= 4"})
    assert fingerprint(other) != fingerprint(task)
    (told,) = differences(task, other, ["graph"])
    assert "well or mild = 1, ill = 0" in told


def test_codings_learn_what_is_desired_where_the_region_can_be_read():
    assert with_desired(["status = ill", "grade = high"], CODINGS) == {
        **CODINGS,
        "status": Coding("status", STATUS.levels, None, ("ill",)),
    }
    for region in (None, {"status": [0.5, None]}, "status in {}", [], 3):
        assert with_desired(region, CODINGS) == CODINGS
    assert (levels_of(CODINGS), unordered_of(CODINGS)) == (
        {"grade": ("low", "high")},
        {"status": ("well", "mild", "ill")},
    )
