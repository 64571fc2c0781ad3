"""Outcomes of classes, and the faces of regions that name them."""

import pytest

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.outcomes import (
    levels_of,
    outcome_faults,
    region_in_codes,
    unordered_of,
    with_desired,
)
from rehearsal_torch.data.question import differences, fingerprint
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

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


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("status = fine", "region: at character 10 of 'status = fine': expected one of well, mild, ill"),
        ("status in {}", "region: at character 12 of 'status in {}': expected one of well, mild, ill"),
        ("status in {ill, mild, well}", "every class of status is desired then: leave it out"),
        ("status <= mild", "classes of status have no order: name those that are desired, status in {well"),
        ("mild = status", "expected the variable first: classes of status have no order"),
        ("2*status >= 1", "classes of status have no order"),
        (
            ["status = well", "status = mild"],
            "region: inequality 2, at character 1 of 'status = mild': status",
        ),
        ("status = well and status = mild", "status is named before: join its classes in one set"),
        ({"status": [0.5, None]}, "region: status has classes, which have no order: name those that"),
        ({"names": ["status"], "normals": [[-1]], "offsets": [-0.5]}, "region: status has classes"),
    ],
)
def test_faults_of_regions(written, words):
    faults = []
    assert region_in_codes(written, CODINGS, faults) is None
    (told,) = faults
    assert words in told
    with pytest.raises(TaskError) as error:
        RehearsalTask.of({**TASK, "region": written})
    assert "not in the graph" not in str(error.value)


def test_what_is_no_text_stays_as_it_is():
    assert region_in_codes({"grade": [0.5, None]}, CODINGS, []) == {"grade": [0.5, None]}
    assert region_in_codes([1, 2], CODINGS, []) == [1, 2]


def test_an_outcome_of_classes_has_no_children():
    graph = RehearsalGraph.of({"status": ("a",), "y": ("status", "a"), "z": ("status",)})
    (told,) = outcome_faults(graph, [Coding("status", STATUS.levels, None, ("well", "mild"))])
    assert told.startswith(
        "graph: status -> y: status is an outcome of 3 classes: a method knows of status only"
    )
    assert "whether it is well or mild, and y and z may depend on the class itself" in told
    assert outcome_faults(graph, [Coding("status", ("no", "yes")), Coding("a", ("p", "q", "r"), "p")]) == []
    with pytest.raises(TaskError, match="status is an outcome of 3 classes: a method knows"):
        RehearsalTask.of({**TASK, "graph": [*TASK["graph"], "status -> cost"]})
