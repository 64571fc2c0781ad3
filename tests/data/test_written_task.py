"""Tasks as people write them, and what they get wrong."""

import pandas as pd
import pytest

from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.data.written_task import written_task

TASK = {
    "graph": {"parents": {"rate": ["score", "stability"], "repaid": ["stability", "rate"]}},
    "context": ["score"],
    "box": {"rate": [0, 1]},
    "region": {"repaid": [0.6, None]},
}
COLUMNS = ("score", "stability", "rate", "repaid", "branch")


def test_a_task_is_what_was_written():
    task = written_task(TASK, COLUMNS)
    assert task.context == ("score",)
    assert task.candidates == (("rate",),)
    assert task.outcomes == ("repaid",)
    assert task.graph.parents("repaid") == ("stability", "rate")
    assert written_task(task.to_plain()).to_plain() == task.to_plain()


def test_names_may_stand_without_brackets():
    loose = {
        **TASK,
        "context": "score",
        "graph": {"parents": {"rate": "score", "repaid": ["stability", "rate"]}},
        "candidates": ["rate"],
    }
    task = written_task(loose)
    assert task.context == ("score",)
    assert task.graph.parents("rate") == ("score",)
    assert task.candidates == (("rate",),)


SLIPS = [
    ({"contxt": []}, ["contxt: unknown key; did you mean 'context'?"]),
    ({"context": None, "box": None}, ["box: expected {variable: [lower, upper]}"]),
    (
        {"graph": {"parents": {"rate": ["repaid"], "repaid": ["rate"]}}},
        ["the edges form a cycle: repaid -> rate -> repaid"],
    ),
    ({"graph": ["rate"]}, ["graph: expected {parents: {child: [causes]}"]),
    (
        {"graph": {"parent": {}}},
        ["graph.parents: missing", "graph.parent: unknown key; did you mean 'parents'?"],
    ),
    (
        {"graph": {**TASK["graph"], "bidirect": []}},
        ["graph.bidirect: unknown key; did you mean 'bidirected'?"],
    ),
    ({"box": {"rate": [1, 0]}}, ["box.rate: expected lower <= upper; got [1, 0]: swap them"]),
    ({"box": {"rate": 1}}, ["box.rate: expected [lower, upper], two finite numbers; got 1"]),
    ({"box": {"rate": [0, float("inf")]}}, ["box.rate: expected a finite number"]),
    ({"box": {"rte": [0, 1]}}, ["box: 'rte' is not in the graph; did you mean 'rate'?"]),
    ({"region": {"repaid": [0.6, 0.2]}}, ["region.repaid: expected lower <= upper"]),
    ({"region": {"repaid": [None, None]}}, ["region: expected at least one bound"]),
    (
        {"region": {"names": ["repaid"], "normals": [[1.0], [-1.0]], "offsets": [0.2, -0.6]}},
        ["region: no outcome satisfies all faces"],
    ),
    ({"region": {"names": ["repaid"], "normals": [[1.0]]}}, ["region.offsets: missing"]),
    ({"context": ["score", "incom"]}, ["context: 'incom' is not in the graph"]),
    (
        {"graph": {"parents": {"rate": ["income"], "repaid": ["rate"]}}, "context": []},
        ["no column 'income'; there are score, stability"],
    ),
    ({"context": ["rate"]}, ["['rate'] have two roles"]),
    (
        {"context": ["repaid"], "region": {"stability": [0, 1]}},
        ["context ['repaid'] is a descendant of an actionable variable"],
    ),
    ({"candidates": [["stability"]]}, ["candidates: 'stability' is not in the box; there are rate"]),
]


@pytest.mark.parametrize(("change", "words"), SLIPS, ids=[words[0][:40] for _, words in SLIPS])
def test_slips_are_told(change, words):
    with pytest.raises(TaskError) as told:
        written_task({**TASK, **change}, COLUMNS)
    for word in words:
        assert word in str(told.value)


def test_several_slips_are_told_at_once():
    broken = {**TASK, "box": {"rate": [1, 0]}, "region": {"repaid": [2, 1]}, "context": ["scor"]}
    with pytest.raises(TaskError, match="3 faults"):
        written_task(broken, COLUMNS)
    torn = {**broken, "contxt": ["score"]}
    del torn["context"]
    with pytest.raises(TaskError, match="4 faults") as told:
        written_task(torn, COLUMNS)
    for words in (
        "contxt: unknown key",
        "context: missing",
        "box.rate: expected lower <= upper",
        "region.repaid: expected lower <= upper",
    ):
        assert words in str(told.value)
    with pytest.raises(TaskError, match="2 faults, nothing was fitted\n- box: missing"):
        written_task({"graph": TASK["graph"], "context": []})


def test_files_that_are_none_are_told(tmp_path):
    with pytest.raises(TaskError, match="no task is given"):
        written_task(None)
    with pytest.raises(TaskError, match="there is no task file"):
        written_task(tmp_path / "none.yaml")
    (tmp_path / "torn.yaml").write_text("box: {rate: [0, 1")
    with pytest.raises(TaskError, match=r"cannot be read as YAML: .*line"):
        written_task(tmp_path / "torn.yaml")
    (tmp_path / "list.yaml").write_text("- rate\n")
    with pytest.raises(TaskError, match=r"expected the parts graph, .*; got list"):
        written_task(tmp_path / "list.yaml")


def test_a_single_point_is_a_range():
    task = written_task({**TASK, "box": {"rate": [0.5, 0.5]}, "region": {"repaid": [0.6, 0.6]}}, COLUMNS)
    assert task.box.bounds() == {"rate": (0.5, 0.5)}
    assert task.region.contains(task.region.offsets.new_tensor([[0.6], [0.61]])).tolist() == [True, False]


CODED = {
    **TASK,
    "graph": {"parents": {"ward": ["score"], "rate": ["ward", "score"], "repaid": ["ward", "rate"]}},
    "context": ["score", "ward"],
    "codings": {"ward": "categorical"},
}


def wards(*names):
    return pd.DataFrame({name: [0.5] * len(names) for name in ("score", "rate", "repaid")} | {"ward": names})


def test_codings_without_levels_are_completed_by_the_rows_and_told():
    notes = ["before"]
    task = written_task(CODED, rows=wards("B", "A", "B", "C"), notes=notes)
    assert "ward=A" in task.graph.names
    assert "ward=C" in task.graph.names
    assert len(notes) == 2
    assert notes[1].startswith("ward is coded")
    assert "B" in notes[1]
    assert written_task(CODED, rows=wards("B", "A", "B", "C")).to_plain() == task.to_plain()
    # Whoever writes the levels is told nothing.
    written = {**CODED, "codings": {"ward": {"classes": ["A", "B"], "reference": "A"}}}
    quiet = []
    assert "ward=B" in written_task(written, rows=wards("A", "B", "A"), notes=quiet).graph.names
    assert quiet == []


def test_codings_that_the_rows_contradict_are_told():
    with pytest.raises(TaskError, match=r"codings.ward: expected two texts; got 3"):
        written_task({**CODED, "codings": {"ward": "binary"}}, rows=wards("A", "B", "C"))


def test_rows_without_codings_change_nothing():
    rows = pd.DataFrame({name: [0.5] * 3 for name in COLUMNS})
    assert written_task(TASK, COLUMNS, rows).to_plain() == written_task(TASK, COLUMNS).to_plain()
