"""What engines cost, with tiny sizes: every row works, its ways agree, the page says what was measured."""

import json

import pytest

from benchmarks.scale.commands import ROOT, spent
from benchmarks.scale.page import apart, equal, page
from benchmarks.scale.rows import ONE, SETS, SHARDED, TRAINED, WAYS, Row, rows
from benchmarks.scale.runner import OUT, main, record
from benchmarks.scale.size import FULL, SMALL
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.user_error import UserError

MARKS = {"imports": 3.0, "decided": 4.5, "ended": 4.6}
ROWS = {row.key: row for row in rows(SMALL)}


def small(part):
    """The rows of a part, as parameters."""
    return pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row.part == part])


@pytest.mark.bench
@small("start")
def test_a_start_passes_its_marks_in_order(key, tmp_path):
    _, measured = ROWS[key].measure(tmp_path)
    (marks,) = measured["marks"]
    assert 0.5 < marks["imports"] < marks["decided"] <= marks["ended"] < 60


@pytest.mark.bench
@small("sharing")
def test_all_ways_write_the_same_bytes(key, tmp_path):
    _, taken = ROWS[key].measure(tmp_path)
    assert set(taken) in (set(WAYS), {*WAYS, *SHARDED})
    assert all(equal({"rounds": [{"measured": taken}]}).values()), taken
    # Two workers of a cluster import the packages, too.
    assert taken["Dask, two workers"]["cpu"] > taken[ONE]["cpu"] + 1
    assert all(each["wall"] > 0.5 and each["memory"] > 100 for each in taken.values())


@pytest.mark.bench
@small("devices")
def test_all_ways_to_train_have_the_same_losses(key, tmp_path):
    _, taken = ROWS[key].measure(tmp_path)
    assert set(taken) == set(TRAINED)
    losses = taken[ONE]["losses"]
    assert len(losses) == SMALL.training_epochs
    assert max(apart({"rounds": [{"measured": taken}]}).values()) < 1e-3 * abs(losses[0])
    assert min(each["rate"] for each in taken.values()) > 0


@pytest.mark.bench
@small("patients")
def test_each_patient_has_seconds_and_bytes(key, tmp_path):
    _, found = ROWS[key].measure(tmp_path)
    assert len(found["cpu"]) == len(found["bytes"]) == 2
    assert min(found["cpu"]) > 0
    assert min(found["bytes"]) > 500


@pytest.mark.bench
@small("tables")
def test_each_number_of_cases_is_a_command(key, tmp_path):
    facts, found = ROWS[key].measure(tmp_path)
    assert [each["cases"] for each in found["commands"]] == list(SMALL.worlds[facts["world"]])
    assert len((tmp_path / "out/decisions.jsonl").read_text().splitlines()) == 4
    assert min(each["cpu"] for each in found["commands"]) > 1


def test_candidate_sets_are_those_of_the_worlds():
    found = {"bank": Loan().task.candidates, "bermuda": Bermuda().task.candidates}
    assert {name: len(sets) for name, sets in found.items()} == SETS
    assert {len(each) for sets in found.values() for each in sets} == {1}


def test_the_committed_page_is_that_of_its_record():
    content = json.loads((ROOT / OUT / "scale.json").read_text(encoding="utf-8"))
    assert (ROOT / OUT / "README.md").read_text(encoding="utf-8") == page(content)
    assert not content["commit"].endswith("+changes")
    assert set(content["rows"]) == {row.key for row in rows(FULL)}
    shared = [row for row in content["rows"].values() if row["part"] == "sharing"]
    assert all(all(equal(row).values()) for row in shared)


def test_what_was_measured_is_kept_and_written(tmp_path):
    measured = []

    def decided(folder):
        measured.append(folder)
        return {"method": "greedy"}, {"cpu": [0.1, 0.3, 0.2, 2.0], "bytes": [2e3, 3e3, 1e3, 2e3]}

    again = Row("start", "job", lambda folder: ({"command": "decide"}, {"marks": [MARKS]}))
    chosen = [Row("patients", "greedy", decided, repeated=False), again]
    first = record(tmp_path, chosen, 1)
    assert record(tmp_path, chosen, 1)["rows"] == first["rows"]
    first = record(tmp_path, chosen, 3)
    assert [len(row["rounds"]) for row in first["rows"].values()] == [1, 3]
    assert len(measured) == 1
    assert json.loads((tmp_path / "scale.json").read_text()) == first
    shown = (tmp_path / "README.md").read_text()
    assert shown == page(first)
    # 1e6 patients of .65 s are 181 hours, with 2 kB each.
    assert "| `greedy` | 4 | 0.25 | 0.65 | 2 | 77% | 2.0 | *181 core hours, 2 GB* |" in shown
    main(["--page", "--out", str(tmp_path)])
    assert (tmp_path / "README.md").read_text() == shown


def content(part, *rounds, **row):
    """A record with one row."""
    taken = [
        {"seconds": 60.0, "others": 0.045 + index / 100, "measured": each}
        for index, each in enumerate(rounds)
    ]
    kept = {"part": part, "name": "work", "rounds": taken} | row
    facts = {"command": "x", "commit": "0" * 40, "python": "3.11", "versions": {"torch": "2", "joblib": None}}
    return facts | {"processor": "p", "cores": 2, "rows": {"key": kept}}


def test_differences_between_ways_are_shown_in_pairs():
    first = {ONE: {"wall": 10.0, "cpu": 9.0, "digest": "a"}, "two": {"wall": 6.0, "cpu": 12.0, "digest": "a"}}
    then = {
        ONE: {"wall": 20.0, "cpu": 18.0, "digest": "a"},
        "two": {"wall": 12.0, "cpu": 24.0, "digest": "b"},
    }
    shown = page(content("sharing", first, then, command="decide"))
    assert "| work: `decide` | one process | 15 [10, 20] | 13.5 [9, 18] |  | equal |" in shown
    assert "|  | two | 9 [6, 12] | 18 [12, 24] | 4.5 [3, 6] | **different** |" in shown


@pytest.mark.slow
def test_what_all_processes_of_a_command_spend_is_counted(tmp_path):
    # The grandchild outlives the child, whose parent does not wait for it.
    busy = "import time; began = time.process_time()\nwhile time.process_time() < began + 0.4: pass"
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}]); print('{{\"a\": 1}}')"
    found = spent(tmp_path, "-c", code)
    assert found.answer == {"a": 1}
    assert found.cpu > 0.4
    assert found.wall > 0
    assert 5 < found.memory < 100


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path):
    with pytest.raises(UserError, match="ended with code 1, and said: no such thing"):
        spent(tmp_path, "-c", "import sys; sys.exit('no such thing')")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--parts", "strat"], "expected some of start"),
        (["--rounds", "0"], "expected at least 1"),
        (["--small"], "choose another --out"),
    ],
)
def test_wrong_arguments_are_one_line(arguments, told):
    with pytest.raises(SystemExit, match=told):
        main(arguments)
