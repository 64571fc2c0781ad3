import errno
import signal
import subprocess
import sys
import tempfile

import pytest
import torch

from rehearsal_torch.data.tables.row_spool import RowSpool


def rows(count):
    return torch.arange(2.0 * count, dtype=torch.float64).reshape(count, 2) / 3


@pytest.mark.parametrize("size", [1, 3, 7, 20])
def test_blocks_are_the_rows_that_were_written(size):
    spool, whole = RowSpool(("a", "b")), rows(7)
    for part in (whole[:3], whole[3:3], whole[3:]):
        spool.append(part)
    blocks = spool.blocks(size)
    assert spool.count == len(blocks) == 7
    assert blocks.rows == tuple(len(block) for block in blocks)
    assert max(blocks.rows) <= size
    assert torch.equal(torch.cat([block.values for block in blocks]), whole)
    assert blocks[0].names == ("a", "b")
    assert not any(bool(block.altered.any()) for block in blocks)
    assert torch.equal(spool.read(2, 3), whole[2:5])


def test_no_row_is_no_block():
    assert RowSpool(("a",)).blocks().count == 0


def test_a_file_that_was_cut_is_noticed(tmp_path):
    spool = RowSpool(("a", "b"), tmp_path)
    spool.append(rows(3))
    spool.file.truncate(40)
    with pytest.raises(OSError, match="is shorter than it was written"):
        spool.blocks()[0]


def test_the_file_goes_with_the_object_and_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = RowSpool(("a", "b"))
    spool.append(rows(3))
    file, blocks = spool.file, spool.blocks()
    del spool
    assert len(blocks[0]) == 3, "the blocks can still be read"
    del blocks
    assert file.closed
    spool = RowSpool(("a", "b"))
    spool.close()
    assert spool.file.closed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="files without a name are those of POSIX")
@pytest.mark.slow
def test_a_killed_process_leaves_nothing(tmp_path):
    code = (
        "import os, signal, sys, torch\n"
        "from rehearsal_torch.data.tables.row_spool import RowSpool\n"
        "spool = RowSpool(('a',), sys.argv[1])\n"
        "spool.append(torch.zeros(1000, 1, dtype=torch.float64))\n"
        "assert os.listdir(sys.argv[1]) == [], 'it has no name even while it is used'\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_with_the_folder(tmp_path, monkeypatch):
    spool = RowSpool(("a", "b"), tmp_path)

    class Full:
        def seek(self, place):
            assert place == 0

        def write(self, content):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool, "file", Full())
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        spool.append(rows(3))
