import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import SAMPLED, Blocks, blocks_of, fingerprint, in_blocks, sample


def table(rows: int) -> Table:
    values = torch.randn(rows, 2, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    return Table(("a", "b"), values, values > 0)


@pytest.mark.parametrize(("rows", "size", "counts"), [(7, 3, (3, 3, 1)), (6, 3, (3, 3)), (2, 3, (2,))])
def test_a_table_in_blocks_is_the_table(rows: int, size: int, counts: tuple[int, ...]):
    whole = table(rows)
    blocks = blocks_of(whole, size)
    assert blocks.rows == counts
    assert (len(blocks), blocks.count) == (rows, len(counts))
    assert torch.equal(torch.cat([block.values for block in blocks]), whole.values)
    assert torch.equal(torch.cat([block.altered for block in blocks]), whole.altered)
    assert blocks[0].values.data_ptr() == whole.values.data_ptr(), "no copy"


def test_blocks_are_made_when_they_are_asked_for():
    made = []
    blocks = Blocks([2, 2, 1], lambda place: made.append(place) or place)
    doubled = blocks.map(lambda place, item: (place, 2 * item))
    assert made == []
    assert list(doubled) == [(0, 0), (1, 2), (2, 4)]
    assert doubled[1] == (1, 2)
    assert made == [0, 1, 2, 1]
    assert doubled.rows == blocks.rows


def test_blocks_that_there_are_not_are_refused():
    blocks = blocks_of(table(3), 2)
    for place in (-1, 2):
        with pytest.raises(IndexError, match=f"expected a block in 0 ... 1; got {place}"):
            blocks[place]
    with pytest.raises(ValueError, match="at least one row in each block"):
        Blocks([1, 0], lambda place: place)


def test_the_fingerprint_is_that_of_the_rows():
    whole = table(5)
    assert fingerprint(blocks_of(whole, 5)) == whole.fingerprint()
    other = Table(whole.names, whole.values.flip(0), whole.altered.flip(0))
    found = {fingerprint(blocks_of(each, 2)) for each in (whole, other)}
    assert len(found) == 2
    assert found.isdisjoint({whole.fingerprint()})


@pytest.mark.parametrize(
    ("rows", "size", "most"), [(1000, 10, 100), (1000, 300, 100), (1000, 7, 999), (50, 1, 30)]
)
def test_a_sample_is_spread_evenly_over_the_rows(rows: int, size: int, most: int):
    whole = Table.observed(("a",), torch.arange(rows, dtype=torch.float64)[:, None])
    read = []
    blocks = blocks_of(whole, size).map(lambda place, block: read.append(place) or block)
    found = sample(blocks, most).values[:, 0]
    assert 1 <= len(found) <= most
    assert len(read) <= SAMPLED, "few blocks are read"
    assert torch.equal(found, found.unique()), "in order, none twice"
    assert float(found[0]) == 0
    widest = rows / min(SAMPLED, blocks.count)
    assert float(found.diff().max()) <= widest + size


def test_a_sample_of_few_rows_is_all_of_them():
    whole = table(30)
    assert sample(blocks_of(whole, 7), 30).fingerprint() == whole.fingerprint()


@pytest.mark.parametrize(("rows", "counts"), [(3, (3, 3, 1)), (7, (7,)), (100, (7,))])
def test_examples_in_blocks_are_the_examples(rows: int, counts: tuple[int, ...]):
    examples = table(7).values, torch.arange(7)
    blocks = in_blocks(examples, rows)
    assert blocks.rows == counts
    for given, found in zip(examples, zip(*blocks, strict=True), strict=True):
        assert torch.equal(torch.cat(found), given)
    assert blocks[0][0].data_ptr() == examples[0].data_ptr(), "no copy"
