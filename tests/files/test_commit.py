"""The commit of a working copy, and which of its files differ."""

import subprocess
from pathlib import Path

import pytest

from rehearsal_torch.files.package_paths import changed_files, commit


def git(folder, *arguments):
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A working copy with two tracked files."""
    root = tmp_path / "copy"
    (root / "docs").mkdir(parents=True)
    for name in ("code.py", "docs/page.md"):
        (root / name).write_text("one\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    monkeypatch.setattr("rehearsal_torch.files.package_paths.checkout", lambda: root)
    return root


def test_the_commit_says_whether_tracked_files_differ(checkout):
    clean = commit()
    assert len(clean) == 40
    (checkout / "notes.txt").write_text("untracked")
    assert commit() == clean
    (checkout / "code.py").write_text("two\n")
    assert commit() == f"{clean}+changes"


def test_results_that_are_being_written_are_no_change_of_the_code(checkout):
    (checkout / "docs/results").mkdir()
    (checkout / "docs/results/run.json").write_text("{}\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "Keep results")
    clean = commit()
    (checkout / "docs/results/run.json").write_text('{"more": 1}\n')
    assert commit() == clean


def test_changed_files_leave_a_folder_out(checkout):
    (checkout / "docs/page.md").write_text("two\n")
    (checkout / "notes.txt").write_text("untracked")
    assert changed_files(checkout, Path("docs")) == []
    (checkout / "code.py").write_text("two\n")
    assert changed_files(checkout, Path("docs")) == ["code.py"]
    assert changed_files(checkout, Path("elsewhere")) == ["code.py", "docs/page.md"]


def test_without_a_working_copy_or_git_there_is_no_commit(checkout, monkeypatch):
    def missing(*arguments, **named):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert commit() is None
    assert changed_files(checkout, Path("docs")) == []
    monkeypatch.setattr("rehearsal_torch.files.package_paths.checkout", lambda: None)
    assert commit() is None
