"""What engines cost, with tiny sizes: every row works, its ways agree, the page says what was measured."""

import json
import subprocess
import sys

import pytest

from benchmarks.scale import rows as measuring
from benchmarks.scale.commands import ROOT, Spent, spent
from benchmarks.scale.page import apart, equal, number, page, slope, spread
from benchmarks.scale.rows import ONE, PARTS, SETS, SHARDED, TRAINED, WAYS, Row, rows
from benchmarks.scale.runner import OUT, main, record, seconds_taken
from benchmarks.scale.size import FULL, SMALL
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.problems.rehearsal.bermuda import Bermuda
from rehearsal_torch.problems.rehearsal.loan import Loan

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


def test_no_two_rows_have_one_name_and_every_part_has_rows():
    keys = [row.key for row in rows(FULL)]
    assert len(set(keys)) == len(keys)
    assert {row.part for row in rows(FULL)} == set(PARTS)


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


def test_a_thousand_jobs_follow_from_their_starts():
    slow = {name: 2 * seconds for name, seconds in MARKS.items()}
    shown = page(content("start", {"marks": [MARKS, slow]}, {"marks": [MARKS]}, command="decide"))
    # 1,000 x 4.5 s; 40 x 3 s + 1,000 x 1.5 s.
    assert "| 3 [3, 6] | 4.5 [4.5, 9] | 4.6 [4.6, 9.2] | *75 CPU minutes* | *27 CPU minutes* |" in shown
    assert "2 minutes; other work took 4.5 to 5.5 % of the cores' time, row by row." in shown
    assert "cores were shared" in shown
    alone = page(content("start", {"marks": [MARKS]}, command="decide"))
    assert "cores were free" in alone
    assert "cores were shared" not in alone
    assert "joblib" not in shown.split("\n\n")[1]


def test_differences_between_ways_are_shown_in_pairs():
    first = {ONE: {"wall": 10.0, "cpu": 9.0, "digest": "a"}, "two": {"wall": 6.0, "cpu": 12.0, "digest": "a"}}
    then = {
        ONE: {"wall": 20.0, "cpu": 18.0, "digest": "a"},
        "two": {"wall": 12.0, "cpu": 24.0, "digest": "b"},
    }
    shown = page(content("sharing", first, then, command="decide"))
    assert "| work: `decide` | one process | 15 [10, 20] | 13.5 [9, 18] |  | equal |" in shown
    assert "|  | two | 9 [6, 12] | 18 [12, 24] | 4.5 [3, 6] | **different** |" in shown


def test_trainings_and_tables_have_their_lines():
    losses = dict(zip(TRAINED, ([1.0, -2.0], [1.0, -2.25], [1.5, -2.0]), strict=True))
    taken = {way: {"rate": 1000, "cpu": 5.0, "losses": each} for way, each in losses.items()}
    shown = page(content("devices", taken, batch=256, rows=40960, epochs=5))
    assert "| work, 5 epochs of 40,960 rows | one process | 1,000 | 5 | 0 |" in shown
    assert "|  | one process, two threads | 1,000 | 5 | 0.2 |" in shown
    assert "|  | two processes | 1,000 | 5 | 0.5 |" in shown
    commands = [
        {"cases": 1000, "cpu": 20.0, "wall": 21.0, "memory": 600.0},
        {"cases": 3000, "cpu": 50.0, "wall": 52.0, "memory": 650.0},
    ]
    assert slope(commands) == 0.015
    shown = page(content("tables", {"commands": commands}, command="decide", sets=1))
    assert "| `decide` | 1 | 1,000 | 20 | 600 |  |  |" in shown
    assert "|  | 1 | 3,000 | 50 | 650 | 15 | *155 CPU s* |" in shown


def test_numbers_have_three_digits():
    assert [number(value) for value in (0.012345, 1.2345, 12.345, 1234.5)] == [
        "0.0123",
        "1.23",
        "12.3",
        "1,234",
    ]
    assert (spread([2.0]), spread([3.0, 1.0, 2.0])) == ("2", "2 [1, 3]")


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


def test_a_way_with_other_bytes_is_recorded_as_different(tmp_path, monkeypatch):
    asked = []

    def typed(folder, verb, *arguments):
        (folder / "out").mkdir(parents=True)
        (folder / "out/decisions.jsonl").write_text("other" if "workers=2" in arguments else "same")
        asked.append((verb, *arguments))
        return Spent(2.0, 1.0, 3.0, "")

    monkeypatch.setattr(measuring, "typed", typed)
    facts, taken = measuring.share(measuring.Work("decide", ("a=1",), sharded=True), tmp_path)
    found = equal({"rounds": [{"measured": taken}]})
    assert found == {way: way not in ("two processes", "Dask, two workers") for way in (*WAYS, *SHARDED)}
    assert facts == {"command": "decide a=1", "files": ["decisions.jsonl"]}
    assert asked[0] == ("decide", "workers=1", "a=1", "out=out")
    assert asked[3][:3] == ("decide", "-m", "shards=2")


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


def test_seconds_of_ended_processes_are_ones_own():
    before = seconds_taken()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    wall, machine, own = (now - then for now, then in zip(seconds_taken(), before, strict=True))
    # Both are counted in steps of a hundredth of a second.
    assert 0.02 < own <= wall + 0.05
    assert machine > own - 0.1
