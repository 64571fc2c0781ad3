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
from rehearsal_torch.data.task_file import TaskError, task_content
from rehearsal_torch.files.schema import FaultsError
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
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


def test_a_single_name_is_a_list_of_one_in_causal_tasks():
    task = CausalTask.of({**CAUSAL, "graph": {"parents": {"heat": "valve", "yield": ["heat", "dose"]}}})
    assert task.nodes == ("heat", "yield")
    assert RehearsalTask(
        RehearsalGraph.of(REHEARSAL["graph"]["parents"]),
        "season",
        Box.of({"price": (0, 1)}),
        Polytope.of({"sales": (0, 1)}),
    ).context == ("season",)


SLIPS = [
    (
        REHEARSAL,
        {"graph": {"parents": {"price": [True]}}},
        "graph.parents.price[0]: expected a name; got True: YAML reads yes, no",
    ),
    (
        REHEARSAL,
        {"graph": {"parents": {False: ["price"]}}},
        "graph.parents: a name there: expected a name; got False",
    ),
    (
        REHEARSAL,
        {"graph": {"parents": {"price": [""]}}},
        "graph.parents.price[0]: expected a name of 1 to 200 letters",
    ),
    (
        REHEARSAL,
        {"graph": {"parents": {"price": ["season", "season"]}}},
        "graph.parents.price: names season twice: keep one",
    ),
    (
        REHEARSAL,
        {"graph": {"parents": {1: ["season"], "1": ["season"]}}},
        "graph.parents: 1 occurs twice",
    ),
    (
        REHEARSAL,
        {"graph": {"parents": {"price": ["price"]}}},
        "graph.parents: price cannot be a cause of itself",
    ),
    (
        REHEARSAL,
        {"graph": {"parents": {"price": {"season": 1}}}},
        "graph.parents.price: expected a list of names; got {'season': 1}",
    ),
    (REHEARSAL, {"graph": {"parents": {}, "colour": 1}}, "graph.colour: unknown key"),
    (
        REHEARSAL,
        {"graph": {"cliques": [["a"]], "edge": []}},
        "graph.edge: unknown key; did you mean 'edges'?",
    ),
    (
        REHEARSAL,
        {"graph": {**REHEARSAL["graph"], "bidirected": ["price", "rival"]}},
        "graph.bidirected[0]: expected a set of two variables or more",
    ),
    (
        REHEARSAL,
        {"graph": {**REHEARSAL["graph"], "bidirected": "price"}},
        "graph.bidirected: expected a list of sets",
    ),
    (REHEARSAL, {"graph": "graph.yaml"}, "graph: expected {parents: {child: [causes]}"),
    (
        REHEARSAL,
        {"candidates": "price"},
        "candidates: expected a list of sets of variables, [[...], ...]; got 'price': write [price]",
    ),
    (REHEARSAL, {"candidates": [["price"], ["price"]]}, "candidates: expected each set once"),
    (REHEARSAL, {"box": {"price": [0, float("nan")]}}, "box.price: expected a finite number"),
    (
        REHEARSAL,
        {"box": {"price": [0, 1e200]}},
        "box.price: expected a finite number, at most 1e+150 in size",
    ),
    (REHEARSAL, {"box": {"price": [False, True]}}, "box.price: expected a number; got False"),
    (REHEARSAL, {"box": {"price": ["0", 1]}}, "box.price: expected a number; got '0': remove the quotes"),
    (
        REHEARSAL,
        {"box": {"price": [0, "0,5"]}},
        "box.price: expected a number; got '0,5': write a decimal point",
    ),
    (
        REHEARSAL,
        {"box": {"price": [0, 1, 2]}},
        "box.price: expected [lower, upper], two finite numbers; got [0, 1, 2]",
    ),
    (
        REHEARSAL,
        {"region": {"sales": [float("inf"), None]}},
        "region.sales: expected [lower, upper], null for an open side",
    ),
    (
        REHEARSAL,
        {"region": {**FACES, "normals": [[1.0], [2.0, 3.0]]}},
        "region.normals: expected rows of equal length",
    ),
    (
        REHEARSAL,
        {"region": {**FACES, "offset": [1.0]}},
        "region.offset: unknown key; did you mean 'offsets'?",
    ),
    (REHEARSAL, {"region": {**FACES, "normals": [[1.0, 2.0]]}}, "region: expected normals (l, 1)"),
    (
        CAUSAL,
        {"graph": {**CAUSAL["graph"], "bidirected": [["heat", "valve2"]]}},
        "graph.bidirected: expected none",
    ),
    (CAUSAL, {"graph": {**CAUSAL["graph"], "bidirected": [["heat", "yield"]]}}, "got heat <-> yield"),
    (CAUSAL, {"reward": {"weights": {"yield": True}}}, "reward.weights.yield: expected a number; got True"),
    (
        CAUSAL,
        {"reward": {"targets": {"yield": 1}, "mean": "no"}},
        "reward.mean: expected true or false; got 'no'",
    ),
    (
        CAUSAL,
        {"reward": {"weights": {"yield": 1}, "mean": True}},
        "reward.mean: unknown key; there are weights",
    ),
    (CAUSAL, {"reward": ["yield"]}, "reward: expected a node's name"),
    (CAUSAL, {"limits": {"normals": [[1, 1, 1]], "offsets": [5]}}, "limits: expected normals (l, 2)"),
    (CAUSAL, {"limits": {"normals": [[1, 1]]}}, "limits.offsets: missing"),
    (CAUSAL, {"limit": None}, "limit: unknown key; did you mean 'limits'?"),
]


@pytest.mark.parametrize(("plain", "change", "words"), SLIPS, ids=[words[:50] for *_, words in SLIPS])
def test_slips_are_told_by_their_path(plain, change, words):
    read = RehearsalTask.of if plain is REHEARSAL else CausalTask.of
    with pytest.raises(TaskError) as told:
        read({**plain, **change})
    assert any(words in each for each in told.value.faults), told.value


def test_all_faults_of_all_parts_are_told_at_once():
    broken = {
        "graph": {"parents": {"heat": ["valv"], "yield": ["heat", "dose"]}, "x": 1},
        "actions": {"valve": [1, 0], "dose": [0, "5"]},
        "rewards": "yield",
    }
    with pytest.raises(TaskError, match="5 faults") as told:
        CausalTask.of(broken, "task.yaml")
    for words in (
        "task.yaml: ",
        "graph.x: ",
        "actions.valve: ",
        "actions.dose: ",
        "reward: missing",
        "rewards: unknown key; did you mean 'reward'?",
    ):
        assert words in str(told.value)
    roles = {
        "graph": {"parents": {"a": ["c"], "y": ["a"], "z": ["y"]}},
        "context": ["a"],
        "box": {"a": [0, 1], "z": [0, 1]},
        "region": {"y": [0, 1]},
    }
    with pytest.raises(TaskError, match="2 faults") as told:
        RehearsalTask.of(roles)
    assert told.value.faults == (
        "['a'] have two roles: a variable is context, actionable or an outcome",
        told.value.faults[1],
    )
    assert "['z'] is a descendant of an outcome" in told.value.faults[1]


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


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (
            {"parents": {"y": [f"v{place}" for place in range(1001)]}},
            "expected at most 1000 variables; got 1002",
        ),
        (
            {"parents": {f"c{child}": [f"v{place}" for place in range(300)] for child in range(80)}},
            "expected at most 20000 edges; got 24000",
        ),
        (
            {"parents": {"y": ["x"]}, "bidirected": [[f"v{place}" for place in range(300)]]},
            "expected at most 20000 edges",
        ),
        ({"cliques": [[f"v{place}" for place in range(1001)]]}, "expected at most 1000 variables"),
    ],
)
def test_sizes_are_bounded_before_anything_is_built(graph, words):
    with pytest.raises(ValueError, match=words):
        graph_of(graph)
    with pytest.raises(TaskError, match=words):
        CausalTask.of({**CAUSAL, "graph": graph})


def test_faces_and_sets_are_bounded():
    with pytest.raises(TaskError, match="at most 1000 faces"):
        CausalTask.of({**CAUSAL, "limits": {"normals": [[1.0, 1.0]] * 1001, "offsets": [5.0] * 1001}})
    with pytest.raises(TaskError, match="200000 values"):
        CausalTask.of({**CAUSAL, "limits": {"normals": torch.ones(1000, 1000), "offsets": [1.0]}})
    circle = {}
    circle["graph"] = circle
    with pytest.raises(TaskError, match="40 levels of nesting"):
        RehearsalTask.of(circle)


def test_a_bomb_in_a_task_file_is_refused_at_once(tmp_path):
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"] + [
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    (tmp_path / "task.yaml").write_text("\n".join(lines))
    with pytest.raises(TaskError, match="at most 200000 values"):
        task_content(tmp_path / "task.yaml", ("graph",))
    (tmp_path / "twice.yaml").write_text("context: [a]\ncontext: [b]\n")
    with pytest.raises(TaskError, match="the key 'context' occurs twice"):
        task_content(tmp_path / "twice.yaml", ("graph",))
    with pytest.raises(TaskError, match="there is no task file"):
        task_content("x" * 100, ("graph",))
    with pytest.raises(TaskError, match="got int"):
        task_content(3, ("graph",))
