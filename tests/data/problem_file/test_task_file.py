"""Task files: one strict reader for both families, with every fault told at once, and nothing read that was
not meant."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from rehearsal_torch.data.problem_file.cases_schema import _rectangle
from rehearsal_torch.data.problem_file.diagnostics import Findings, TaskError
from rehearsal_torch.data.problem_file.task_file import problem_of_task
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_compatibility import differences, fields, taken
from rehearsal_torch.files.schema import FaultsError
from rehearsal_torch.graphs.graph_notation import graph_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.user_table import written_task
from rehearsal_torch.spaces.inequalities import FACES
from tests.toys.mutated import mutated

REHEARSAL = {
    "graph": {
        "parents": {"price": ["season"], "rival": ["season"], "sales": ["price", "rival"]},
        "bidirected": [["price", "rival"]],
    },
    "context": ["season"],
    "box": {"price": [0, 2]},
    "region": {"sales": [0.5, None]},
    "candidates": [["price"]],
}
ONE_FACE = {"names": ["sales"], "normals": [[-1.0]], "offsets": [-0.5]}
CLIQUES = {
    "cliques": [["season"], ["price", "rival"], ["sales"]],
    "edges": [[a, b] for a, b in RehearsalTask.of(REHEARSAL).graph.edges],
}
FORMS = [
    REHEARSAL,
    {**REHEARSAL, "region": ONE_FACE},
    {**REHEARSAL, "graph": CLIQUES},
    RehearsalTask.of(REHEARSAL).to_plain(),
]


def read_or_faults(read, plain):
    """What is read, or the faults that are told; any other exception fails the test."""
    try:
        return read(plain)
    except FaultsError as error:
        return error.faults
    except ValueError as error:
        return (str(error),) if read is graph_of else (type(error),)


@pytest.mark.slow
@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.sampled_from(FORMS).flatmap(mutated))
def test_a_mutated_rehearsal_task_is_a_task_or_a_paragraph(plain):
    found = read_or_faults(RehearsalTask.of, plain)
    if isinstance(found, RehearsalTask):
        assert (
            RehearsalTask.of(yaml.safe_load(yaml.safe_dump(found.to_plain()))).to_plain() == found.to_plain()
        )
    else:
        assert found
        assert all(isinstance(each, str) and len(each) < 2000 for each in found)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.sampled_from([REHEARSAL["graph"], CLIQUES, {"graph": CLIQUES}, REHEARSAL]).flatmap(mutated))
def test_a_mutated_graph_is_a_graph_or_a_paragraph(plain):
    found = read_or_faults(graph_of, plain)
    if isinstance(found, RehearsalGraph):
        assert graph_of(found.to_plain()) == found
    else:
        assert found
        assert all(found)


@pytest.mark.parametrize(
    "read",
    [lambda graph: graph_of(graph), lambda graph: RehearsalTask.of({**REHEARSAL, "graph": graph}).graph],
)
def test_a_single_name_is_a_list_of_one_and_never_letters(read):
    loose = {"parents": {"price": "season", "rival": "season", "sales": ["price", "rival"]}}
    listed = {"parents": {"price": ["season"], "rival": ["season"], "sales": ["price", "rival"]}}
    assert read(loose) == read(listed)
    assert read(loose).names == ("season", "price", "rival", "sales")
    assert RehearsalGraph.of(loose["parents"]) == read(listed), "from Python as well"


def test_nesting_is_bounded():
    circle = {}
    circle["graph"] = circle
    with pytest.raises(TaskError, match="40 levels of nesting"):
        RehearsalTask.of(circle)


TASK = {"graph": ["x -> a -> {y z}"], "context": "x", "box": {"a": [0, 1]}}


def test_a_task_is_read_as_a_problem():
    form, _, coded = problem_of_task({**TASK, "region": "y >= 1", "codings": {"x": [1, 2]}}, Findings("task"))
    roles = {name: variable.role for name, variable in form.variables.items()}
    assert roles == {"x": "context", "a": "action", "y": "outcome", "z": "other"}
    assert (form.variables["a"].range, form.variables["x"].levels, coded) == ([0, 1], ["1", "2"], ["x"])


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


DRUGS = """
graph: {parents: {drug: [age], dose: [age], ward: [age], well: [age, drug, dose, ward]}}
context: age
box: {drug: {values: [1, 0]}, dose: [0, 10], ward: {values: [1, 2, 4]}}
region: {well: [0.5, null]}
candidates: [[drug, ward], [dose]]
"""


def task(**changes):
    return written_task(yaml.safe_load(DRUGS) | changes)


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
