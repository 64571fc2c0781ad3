"""Where a run may write: out= deletes nothing, a folder is one process's at a time, and a disk that refuses
is a sentence."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from rehearsal_torch.cli.resume import HYDRA
from rehearsal_torch.files import atomic_write
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

        patch.setattr(atomic_write.os, "fsync", full)
        code, said = resume(*BEGIN)
        assert (code, os.strerror(number) in said, len(said.splitlines())) == (2, True, 1), said
    assert (
        not [path for path in empty.glob(".*") if path.name not in (LOCK, HYDRA)] if empty.is_dir() else True
    )
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
