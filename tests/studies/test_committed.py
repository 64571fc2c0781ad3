"""What is committed of a study."""

import gzip
import subprocess

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.studies import committed
from rehearsal_torch.studies.committed import LARGE, check_clean, pack, unpack

ROWS = "a,b\n" + "1.5,2\n" * (LARGE // 6 + 1)


def test_large_rows_are_packed_and_unpacked_to_the_same_bytes(tmp_path):
    (tmp_path / "more").mkdir()
    for name in ("rows.csv", "more/rows.csv"):
        (tmp_path / name).write_text(ROWS)
    (tmp_path / "jobs.csv").write_text("seed\n1\n")
    assert pack(tmp_path) == ["rows.csv", "rows.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.csv", "more", "rows.csv.gz"]
    first = (tmp_path / "rows.csv.gz").read_bytes()
    assert first == (tmp_path / "more/rows.csv.gz").read_bytes()
    unpack(tmp_path)
    assert (tmp_path / "rows.csv").read_text() == ROWS == (tmp_path / "more/rows.csv").read_text()
    assert not (tmp_path / "rows.csv.gz").exists()
    pack(tmp_path)
    assert (tmp_path / "rows.csv.gz").read_bytes() == first


def test_rows_that_a_killed_command_left_are_newer(tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"old\n"))
    (tmp_path / "rows.csv").write_text("old\nnew\n")
    unpack(tmp_path)
    assert (tmp_path / "rows.csv").read_text() == "old\nnew\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(ROWS.encode())[:-40]])
def test_damaged_rows_are_refused_and_kept(tmp_path, content):
    (tmp_path / "rows.csv.gz").write_bytes(content)
    with pytest.raises(PlainFileError, match=r"rows\.csv\.gz: expected compressed rows.*restore the file"):
        unpack(tmp_path)
    assert (tmp_path / "rows.csv.gz").read_bytes() == content


def test_more_than_fits_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(committed, "BYTES", 10)
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"1" * 11))
    with pytest.raises(PlainFileError, match="at most 10 bytes"):
        unpack(tmp_path)


def test_results_come_from_clean_commits(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init")
    git("config", "user.email", "a@b.c")
    git("config", "user.name", "a")
    for name in ("code.py", "docs/results/auf/jobs.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git("add", "-A")
    git("commit", "-m", "begin")
    monkeypatch.setattr(committed, "checkout", lambda: tmp_path)
    kept = tmp_path / "docs/results/auf"
    (kept / "jobs.csv").write_text("2\n")  # a study's own rows
    (tmp_path / "notes.txt").write_text("not tracked\n")
    check_clean(kept)
    (tmp_path / "code.py").write_text("2\n")
    check_clean(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"code\.py differs from the commit") as told:
        check_clean(kept)
    assert "Commit first, or choose another out=" in str(told.value)
    monkeypatch.setattr(committed, "checkout", lambda: None)
    check_clean(kept)
