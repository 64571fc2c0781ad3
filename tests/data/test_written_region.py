"""Regions as text, bounds and faces are the same polytope; what is wrong is said at its place."""

import pytest
from pydantic_core import PydanticCustomError

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.data.written_region import _rectangle, region_of
from rehearsal_torch.spaces.inequalities import FACES

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


def faces(count, names=2):
    normals = [[1.0] + [0.0] * (names - 1)] * count
    return {
        "names": ["y", "z", *(f"n{place}" for place in range(2, names))],
        "normals": normals,
        "offsets": [1.0] * count,
    }


def test_faces_and_their_numbers_are_bounded():
    assert len(region(faces(FACES)).offsets) == FACES
    with pytest.raises(TaskError, match=f"expected at most {FACES} faces with 20000 numbers"):
        region(faces(FACES + 1))
    widest = 20_000 // FACES
    assert _rectangle(faces(FACES, widest)["normals"])
    for wide in (faces(FACES, widest + 1), faces(1, 20_001)):
        with pytest.raises(PydanticCustomError, match="faces with 20000 numbers"):
            _rectangle(wide["normals"])
    assert _rectangle(faces(1, 20_000)["normals"])
    assert len(_rectangle([[]])) == 1
