"""Locks: one process at a time, told who it is, and nothing is left behind."""

import json
import os
import subprocess
import sys

import pytest

from rehearsal_torch.files.lock import LOCK, InUseError, holder, lock_of, locked

HOLD = """
import sys
from rehearsal_torch.files.lock import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_who_comes_second_is_told_who_was_first(tmp_path):
    with locked(tmp_path / "run"):
        with (
            pytest.raises(InUseError, match=rf"run is in use by process {os.getpid()} on .* since 2") as told,
            locked(tmp_path / "run"),
        ):
            raise AssertionError("two at a time")
        assert len(str(told.value).splitlines()) == 1
        assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [LOCK, f"{LOCK}.json"]
    assert list((tmp_path / "run").iterdir()) == []


def test_whether_a_folder_is_held_is_seen_without_a_trace(tmp_path):
    assert holder(tmp_path) is None
    with locked(tmp_path):
        assert holder(tmp_path).startswith(f"by process {os.getpid()} on ")
    assert holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / LOCK).touch()
    assert holder(tmp_path) is None, "what a killed process left holds nothing"
    with locked(tmp_path):
        pass


def test_a_file_has_its_lock_beside_it(tmp_path):
    file = tmp_path / "trials.yaml"
    assert lock_of(file) == tmp_path / f".trials.yaml{LOCK}"
    file.write_text("trials: []\n")
    assert lock_of(file) == tmp_path / f".trials.yaml{LOCK}"
    with locked(file), pytest.raises(InUseError, match=r"trials\.yaml is in use"), locked(file):
        raise AssertionError("two at a time")
    assert [path.name for path in tmp_path.iterdir()] == ["trials.yaml"]


def test_a_killed_process_holds_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InUseError, match=f"by process {process.pid}"), locked(tmp_path):
            raise AssertionError("two at a time")
        process.kill()
        process.wait()
        assert (tmp_path / LOCK).exists(), "what it left behind keeps nobody out"
        with locked(tmp_path):
            assert json.loads((tmp_path / f"{LOCK}.json").read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"pid": "x"}', "[" * 9999])
def test_a_note_that_cannot_be_read_hides_nothing(tmp_path, note):
    with locked(tmp_path):
        (tmp_path / f"{LOCK}.json").write_text(note)
        with pytest.raises(InUseError, match="by another process"), locked(tmp_path):
            raise AssertionError("two at a time")


def test_a_file_of_that_name_with_something_in_it_stays(tmp_path):
    (tmp_path / LOCK).write_text("mine")
    with locked(tmp_path):
        pass
    assert (tmp_path / LOCK).read_text() == "mine"


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    (tmp_path / "trials.json").write_text("{}")
    left = [".report.html.41.part", f".{LOCK}.json.41.part", ".trials.json.41.part"]
    for name in (*left, f"..trials.json{LOCK}.json.41.part"):
        (tmp_path / name).write_text("half")
    with locked(tmp_path / "trials.json"):
        found = {path.name for path in tmp_path.iterdir() if path.suffix == ".part"}
        assert found == set(left[:2]), "what others write in that folder is theirs"
    (tmp_path / left[2]).write_text("half")
    with locked(tmp_path):
        assert not list(tmp_path.glob(".*.part"))
    assert [path.name for path in tmp_path.iterdir()] == ["trials.json"]


def test_a_file_that_another_process_is_writing_under_its_own_lock_stays(tmp_path):
    (tmp_path / "trials.json").write_text("{}")
    with locked(tmp_path / "trials.json"):
        (tmp_path / ".trials.json.41.part").write_text("half")
        with locked(tmp_path):
            assert (tmp_path / ".trials.json.41.part").exists()
