from pathlib import Path

import pytest

from rehearsal_torch.files.writing import make_folder, write_bytes, write_text


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
