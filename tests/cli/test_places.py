"""Where a run may write: out= deletes nothing, a folder is one process's at a time, and a disk that refuses
is a sentence."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.files import writing
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.run_folder import RunFolder

BEGIN = ("+experiment=auf", "out=run")


@pytest.fixture
def empty(run):
    shutil.rmtree(run)
    return run


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize(
    "names",
    [
        ("config.yaml", "data.yaml"),
        ("run.json",),
        ("error.txt", "status.json"),
        ("thesis.tex",),
        ("config.yaml", "thesis.tex"),
    ],
)
def test_files_of_others_stay(empty, resume, names):
    empty.mkdir()
    for name in names:
        (empty / name).write_text('{"seed": "mine"}')
    before = content(empty)
    code, said = resume(*BEGIN)
    assert (code, len(said.splitlines())) == (2, 1), said
    assert content(empty) == before


@pytest.mark.parametrize("out", ["run", "run/deeper", "run/deeper/still"])
def test_a_file_is_no_folder(empty, resume, out):
    empty.write_text("mine")
    code, said = resume("+experiment=auf", f"out={out}")
    assert (code, "file" in said, len(said.splitlines())) == (2, True, 1), said
    assert empty.read_text() == "mine"


def test_a_run_that_had_not_begun_is_begun_anew(empty, resume):
    RunFolder(empty).write_json("run.json", {"script": "decide", "overrides": ["seed=3"]})
    (empty / ".config.yaml.99.part").write_text("seed: 3")
    assert resume(*BEGIN) == (0, "")
    assert not list(empty.glob(".*"))
    assert RunFolder(empty).read_yaml("config.yaml")["seed"] == 0


def test_a_finished_run_is_reported_again(run, resume):
    before = content(run)
    assert resume(*BEGIN) == (0, "")
    after = content(run)
    assert {name for name in before if before[name] != after[name]} <= {"run.json", "status.json"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_disk_that_refuses_leaves_a_folder_that_can_be_used(empty, resume, monkeypatch, number, after):
    with monkeypatch.context() as patch:
        calls = []

        def full(handle):
            calls.append(handle)
            if len(calls) > after:
                raise OSError(number, os.strerror(number))

        patch.setattr(writing.os, "fsync", full)
        code, said = resume(*BEGIN)
        assert (code, os.strerror(number) in said, len(said.splitlines())) == (2, True, 1), said
    assert not [path for path in empty.glob(".*") if path.name != LOCK] if empty.is_dir() else True
    assert resume(*BEGIN) == (0, "")


def test_a_disk_that_is_full_in_mid_run_loses_nothing(empty, resume, monkeypatch):
    lines = []

    def record(self, rounds):
        for number, each in enumerate(whole(self, rounds)):
            lines.append(each)
            yield each
            if number == 0:
                raise OSError(errno.ENOSPC, "No space left on device", "run/decisions.jsonl")

    whole = RunFolder.record
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "record", record)
        code, said = resume(*BEGIN)
    assert (code, "No space left" in said, "Free some space" in said) == (2, True, True)
    assert RunFolder(empty).read_json("status.json")["state"] == "failed"
    assert len(RunFolder(empty).decisions()) == 1
    assert resume(*BEGIN) == (0, "")
    assert len(RunFolder(empty).decisions()) == 2


def test_what_a_process_that_was_killed_left_is_gone_when_the_run_has_ended(run, resume):
    before = set(content(run))
    shutil.rmtree(run / "checkpoint")
    half = (".report.html.41.part", ".checkpoint.part/.config.yaml.41.part", "figures/.a.png.41.part")
    for name in half:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text("half")
    assert resume() == (0, "")
    assert set(content(run)) == before


def test_an_interruption_is_noted(empty, resume, monkeypatch):
    def record(self, rounds):
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "record", record)
        code, said = resume(*BEGIN)
    assert (code, said) == (130, f"Interrupted; to continue, type {spoken('decide')} resume=run")
    assert RunFolder(empty).read_json("status.json")["state"] == "interrupted"
    assert not (empty / "error.txt").exists()


def test_a_place_that_takes_no_folders_is_named(empty, resume, monkeypatch):
    def nowhere(self, *args, **kwargs):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", nowhere)
    code, said = resume("+experiment=auf", "out=nowhere/run")
    assert (code, len(said.splitlines())) == (2, 1), said
    assert "no folder can be made there" in said


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("method", ["mkdir", "open"])
def test_a_place_that_may_not_be_written_to_is_told_with_the_key(empty, resume, monkeypatch, number, method):
    """It read: choose a writable folder."""
    if method == "open":
        empty.mkdir()
    usual = getattr(Path, method)

    def refuse(self, *args, **kwargs):
        if self.absolute().is_relative_to(empty) and args[:1] != ("rb",):
            raise OSError(number, os.strerror(number), str(self))
        return usual(self, *args, **kwargs)

    monkeypatch.setattr(Path, method, refuse)
    code, said = resume(*BEGIN)
    assert (code, len(said.splitlines())) == (2, 1), said
    assert said.startswith("run")
    assert f"({os.strerror(number)}). Choose a folder that can be written to by out=FOLDER." in said
