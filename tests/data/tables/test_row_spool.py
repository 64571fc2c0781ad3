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
    spool.file.write_bytes(b"\0" * 40)
    with pytest.raises(OSError, match="is shorter than it was written"):
        spool.blocks()[0]


def test_the_file_goes_with_the_object_and_its_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = RowSpool(("a", "b"))
    spool.append(rows(3))
    blocks = spool.blocks()
    del spool
    assert len(blocks[0]) == 3, "the blocks can still be read"
    del blocks
    assert list(tmp_path.iterdir()) == []
    spool = RowSpool(("a", "b"))
    spool.close()
    assert list(tmp_path.iterdir()) == []
