"""Regions as text, bounds and faces are the same polytope; what is wrong is said at its place."""

import pytest

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.data.written_region import region_of

TASK = {"graph": ["x -> a -> {y z}"], "context": "x", "box": {"a": [0, 1]}}


def region(written):
    return RehearsalTask.of({**TASK, "region": written}).region


def test_text_bounds_and_faces_are_the_same_region():
    bounds = {"y": [0.5, 2], "z": [None, 3]}
    for text in ("0.5 <= y <= 2 and z <= 3", ["0.5 <= y <= 2", "z <= 3"]):
        found = region(text)
        assert found.names == ("y", "z") == region(bounds).names
        assert sorted(zip(found.normals.tolist(), found.offsets.tolist(), strict=True)) == sorted(
            zip(region(bounds).normals.tolist(), region(bounds).offsets.tolist(), strict=True)
        )
    assert region("y - 2*z >= 1").normals.tolist() == [[-1.0, 2.0]]
    assert region_of({"y": [0, None]}).offsets.tolist() == [0.0]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("y < 2", "region: at character 3 of 'y < 2': expected <= or >="),
        (["y <= 2", "z >="], "region: inequality 2, at character 5 of 'z >='"),
        (["y <= 2", 3], "region: expected inequality 2, a text such as 0.6 <= repaid; got 3"),
        ("y <= 1 and y >= 2", "region: no outcome satisfies all faces of the desired region"),
        ("w <= 1", "region: 'w' is not in the graph"),
        ([], "region: expected inequalities such as"),
    ],
)
def test_what_is_no_region_is_refused(written, words):
    with pytest.raises(TaskError) as told:
        region(written)
    assert words in str(told.value)
