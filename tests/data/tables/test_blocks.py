import pytest
import torch

from rehearsal_torch.data.tables.blocks import Blocks, in_blocks


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
    blocks = in_blocks((torch.arange(3),), 2)
    for place in (-1, 2):
        with pytest.raises(IndexError, match=f"expected a block in 0 ... 1; got {place}"):
            blocks[place]
    with pytest.raises(ValueError, match="at least one row in each block"):
        Blocks([1, 0], lambda place: place)


@pytest.mark.parametrize(("rows", "counts"), [(3, (3, 3, 1)), (7, (7,)), (100, (7,))])
def test_examples_in_blocks_are_the_examples(rows: int, counts: tuple[int, ...]):
    examples = torch.arange(14.0).reshape(7, 2), torch.arange(7)
    blocks = in_blocks(examples, rows)
    assert blocks.rows == counts
    for given, found in zip(examples, zip(*blocks, strict=True), strict=True):
        assert torch.equal(torch.cat(found), given)
    assert blocks[0][0].data_ptr() == examples[0].data_ptr(), "no copy"
