"""Task files: one strict reader for both families, with every fault told at once, and nothing read that was
not meant."""

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.files.schema import FaultsError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
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
CAUSAL = {
    "graph": {"parents": {"heat": ["valve"], "yield": ["heat", "dose"]}},
    "actions": {"valve": [0, 1], "dose": [0, 5]},
    "reward": {"weights": {"yield": 1, "heat": -0.5}},
    "limits": {"normals": [[1, 1]], "offsets": [5]},
}
FACES = {"names": ["sales"], "normals": [[-1.0]], "offsets": [-0.5]}
CLIQUES = {
    "cliques": [["season"], ["price", "rival"], ["sales"]],
    "edges": [[a, b] for a, b in RehearsalTask.of(REHEARSAL).graph.edges],
}
FORMS = [
    REHEARSAL,
    {**REHEARSAL, "region": FACES},
    {**REHEARSAL, "graph": CLIQUES},
    RehearsalTask.of(REHEARSAL).to_plain(),
]
CAUSAL_FORMS = [
    CAUSAL,
    {**CAUSAL, "reward": {"targets": {"yield": 2}, "mean": False}},
    {**CAUSAL, "reward": "yield"},
    CausalTask.of(CAUSAL).to_plain(),
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
@given(st.sampled_from(CAUSAL_FORMS).flatmap(mutated))
def test_a_mutated_causal_task_is_a_task_or_a_paragraph(plain):
    found = read_or_faults(CausalTask.of, plain)
    if isinstance(found, CausalTask):
        assert CausalTask.of(yaml.safe_load(yaml.safe_dump(found.to_plain()))).to_plain() == found.to_plain()
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


def test_what_was_read_before_is_read_still():
    for plain in (
        *FORMS,
        OmegaConf.create(REHEARSAL),
        {**REHEARSAL, "candidates": []},
        {**REHEARSAL, "candidates": None},
        {**REHEARSAL, "context": None},
    ):
        RehearsalTask.of(plain)
    box = {"price": ["0", 2]}
    with pytest.raises(TaskError):
        RehearsalTask.of({**REHEARSAL, "box": box})
    assert RehearsalTask.of({**REHEARSAL, "box": yaml.safe_load("price: [0, 2e0]")}).box.bounds() == {
        "price": (0.0, 2.0)
    }, "YAML reads 2e0 as a text"
    assert RehearsalTask.of(
        {**REHEARSAL, "region": {"sales": (0.5, float("inf"))}}
    ).region.offsets.tolist() == [-0.5]
    numbered = {"graph": {"parents": {1: [0]}}, "context": [], "box": {0: [0, 1]}, "region": {1: [0, 1]}}
    assert RehearsalTask.of(numbered).graph.names == ("0", "1"), "a whole number is read as its digits"
    tensors = {
        **CAUSAL,
        "limits": {"normals": torch.ones(1, 2), "offsets": torch.tensor([5.0])},
        "reward": FunctionReward(("yield",), lambda each: each[..., 0]),
    }
    assert CausalTask.of(tensors).limits.offsets.tolist() == [5.0]
    assert CausalTask.of(CausalTask.of(CAUSAL)).actions == ("valve", "dose")


def test_faces_and_sets_are_bounded():
    with pytest.raises(TaskError, match="at most 1000 faces"):
        CausalTask.of({**CAUSAL, "limits": {"normals": [[1.0, 1.0]] * 1001, "offsets": [5.0] * 1001}})
    with pytest.raises(TaskError, match="200000 values"):
        CausalTask.of({**CAUSAL, "limits": {"normals": torch.ones(1000, 1000), "offsets": [1.0]}})
    circle = {}
    circle["graph"] = circle
    with pytest.raises(TaskError, match="40 levels of nesting"):
        RehearsalTask.of(circle)
