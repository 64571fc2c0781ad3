import errno
import os
import resource
from pathlib import Path

import pytest

from rehearsal_torch.files.atomic_write import (
    appending,
    make_folder,
    remove_unfinished,
    write_bytes,
    write_text,
)


def test_a_file_is_replaced_as_a_whole_and_folders_are_made(tmp_path):
    file = write_text(tmp_path / "deep" / "a.txt", "one")
    write_text(file, "zwei ä")
    assert file.read_bytes() == "zwei ä".encode()
    assert [path.name for path in file.parent.iterdir()] == ["a.txt"]


def test_a_failure_keeps_what_was_there_and_leaves_nothing_beside_it(tmp_path, monkeypatch):
    file = write_bytes(tmp_path / "a.txt", b"old")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_bytes(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_takes_no_folders_is_named(tmp_path, monkeypatch):
    def nowhere(self, *args, **kwargs):
        raise FileNotFoundError(2, "No such file or directory", str(self))

    monkeypatch.setattr(Path, "mkdir", nowhere)
    with pytest.raises(PermissionError, match="no folder can be made there"):
        make_folder(tmp_path / "proc" / "run")


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path):
    kept = ("a.txt", ".a.txt.part", ".a.txt.12", "b.31.part", ".hidden")
    for name in (*kept, ".a.txt.12.part", ".b.yaml.7.part"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".checkpoint.12.part").mkdir()
    (tmp_path / ".checkpoint.12.part/weights").write_text("half")
    remove_unfinished(tmp_path, {"b.yaml"})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        (*kept, ".a.txt.12.part", ".checkpoint.12.part")
    )
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    remove_unfinished(tmp_path / "missing")


def test_a_folder_that_was_moved_aside_comes_back_unless_it_was_replaced(tmp_path):
    for name, content in ((".one.5.old", "one"), (".two.5.old", "old"), ("two", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_text(content)
    remove_unfinished(tmp_path)
    assert {path.name: (path / "weights").read_text() for path in tmp_path.iterdir()} == {
        "one": "one",
        "two": "new",
    }


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / ".one.5.part").symlink_to(tmp_path / "theirs")
    remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def append_all(file, *texts):
    with appending(file) as append:
        for text in texts:
            append(text)


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as whole:
            write_bytes(tmp_path / "a.txt", b"x" * 11)
        with pytest.raises(OSError, match="File too large") as line:
            append_all(tmp_path / "b.txt", "ä" * 4, "three")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert whole.value.filename == str(tmp_path / "a.txt")
    assert line.value.filename == str(tmp_path / "b.txt")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"b.txt": "ää" * 2 + "th"}


def test_text_is_appended_at_once_and_an_error_in_between_keeps_it(tmp_path):
    def write():
        with appending(tmp_path / "a.txt") as append:
            append("one\n")
            assert (tmp_path / "a.txt").read_bytes() == b"one\n"
            append("zwei ä\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    with appending(tmp_path / "a.txt") as append:
        append("three\n")
    assert (tmp_path / "a.txt").read_text() == "one\nzwei ä\nthree\n"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_is_not_written_to_is_told_with_the_name_of_the_file(tmp_path, monkeypatch, number):
    """The temporary file beside it was named, of which nobody knows."""

    def refuse(self, *args, **kwargs):
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(OSError, match=os.strerror(number)) as told:
        write_text(tmp_path / "n.yaml", "a: 1")
    assert told.value.filename == str(tmp_path / "n.yaml")
