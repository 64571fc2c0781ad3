"""Batches: every row once an epoch, in memory or in blocks, whole or shared."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.training import example_batches as training_batches
from rehearsal_torch.training.example_batches import Batches, BlockBatches, Shares, buffers_of


def in_blocks(rows: tuple[torch.Tensor, ...], size: int) -> Blocks[tuple[torch.Tensor, ...]]:
    parts = list(zip(*(each.split(size) for each in rows), strict=True))
    return Blocks([len(part[0]) for part in parts], lambda place: parts[place])


def test_an_epoch_goes_through_every_row_once_in_an_order_of_its_own():
    epoch = [0]
    rows = (torch.arange(10), torch.arange(10) * 2)
    batches = Batches(rows, 4, seed=3, epoch=lambda: epoch[0])
    first = list(batches)
    assert [len(part) for part, _ in first] == [4, 4, 2]
    assert len(batches) == 3
    assert torch.equal(torch.cat([part for part, _ in first]).sort().values, rows[0])
    assert all(torch.equal(2 * one, other) for one, other in first)
    assert all(torch.equal(one, other) for (one, _), (other, _) in zip(first, batches, strict=True))
    epoch[0] = 1
    assert any(not torch.equal(one, other) for (one, _), (other, _) in zip(first, batches, strict=True))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_blocks_give_the_batches_of_one_permutation_of_all_rows(monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(training_batches, "BLOCK", 100)
    rows = torch.randn(1000, 3)
    batches = Batches((rows, rows[:, 0]), size, seed=4, epoch=lambda: 2)
    whole = rows[batches.order(2)].split(size)
    found = list(batches)
    assert len(found) == len(batches) == len(whole)
    for (one, other), expected in zip(found, whole, strict=True):
        assert torch.equal(one, expected)
        assert torch.equal(other, expected[:, 0])
    blocks = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one, _ in found}
    assert max(blocks.values()) <= 12 * (100 + 64 * size), "no block holds all rows"


def test_without_an_epoch_the_order_stays():
    assert torch.equal(torch.cat([part for (part,) in Batches((torch.arange(5),), 2)]), torch.arange(5))


@pytest.mark.parametrize(
    ("rows", "size"),
    [((torch.zeros(0, 2),), 4), ((torch.zeros(3), torch.zeros(4)), 2), ((torch.zeros(3),), 0)],
)
def test_examples_that_make_no_batches_are_refused(rows: tuple[torch.Tensor, ...], size: int):
    with pytest.raises(ValueError, match="one positive number of rows"):
        Batches(rows, size)


@pytest.mark.parametrize("block", [1000, 64, 33])
def test_blocks_in_one_buffer_give_the_batches_of_rows_in_memory(block: int):
    rows = (torch.randn(1000, 3), torch.arange(1000))
    inside = list(Batches(rows, 32, 5, lambda: 3))
    found = list(BlockBatches(in_blocks(rows, block), 32, 5, lambda: 3))
    assert len(found) == len(inside) == len(BlockBatches(in_blocks(rows, block), 32, 5, lambda: 3))
    for one, other in zip(found, inside, strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


@given(
    rows=st.integers(1, 300), block=st.integers(1, 80), buffer=st.integers(1, 120), size=st.integers(1, 50)
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_buffers_hold_every_row_once_and_never_all(rows: int, block: int, buffer: int, size: int):
    made = []

    def counted(place: int, part: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        made.append(place)
        return part

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_batches, "BUFFER", buffer)
        blocks = in_blocks((torch.arange(rows),), block).map(counted)
        found = [part for (part,) in BlockBatches(blocks, size, 1, lambda: 0)]
        groups = buffers_of(blocks.rows)
    assert [len(part) for part in found[:-1]] == [size] * (len(found) - 1)
    assert len(found) == -(-rows // size)
    assert torch.equal(torch.cat(found).sort().values, torch.arange(rows))
    assert sorted(made) == list(range(blocks.count)), "each block is read once"
    assert [place for group in groups for place in group] == list(range(blocks.count))
    if len(groups) > 1:
        assert max(len(group) for group in groups) * min(block, rows) <= max(buffer, block)


def test_orders_of_blocks_depend_on_seed_and_epoch_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(training_batches, "BUFFER", 100)
    blocks = in_blocks((torch.arange(500),), 50)

    def order(seed: int, epoch: int) -> list[int]:
        return torch.cat([part for (part,) in BlockBatches(blocks, 7, seed, lambda: epoch)]).tolist()

    assert order(1, 2) == order(1, 2)
    assert len({tuple(order(*pair)) for pair in ((1, 2), (1, 3), (2, 2))}) == 3
    first = order(1, 2)[:100]
    assert len({row // 50 for row in first}) == 2, "two blocks at a time"
    assert first != sorted(first)
    assert first[:50] != sorted(first[:50]), "and their rows among each other"


def test_blocks_without_an_epoch_stay_in_order():
    batches = BlockBatches(in_blocks((torch.arange(10),), 4), 3)
    assert [part.tolist() for (part,) in batches] == [[0, 1, 2], [3], [4, 5, 6], [7], [8, 9]]
    assert len(batches) == 5


def test_blocks_without_rows_are_refused():
    with pytest.raises(ValueError, match="a positive number of rows"):
        BlockBatches(Blocks([], lambda _: ()), 3)


@given(rows=st.integers(1, 60), size=st.integers(1, 20), world=st.integers(1, 5))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_mean_of_the_shares_is_the_mean_of_the_batch(rows: int, size: int, world: int):
    values = torch.randn(rows, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    batches = Batches((values,), size, 0, lambda: 0)
    shares = [list(Shares(batches, rank, world)) for rank in range(world)]
    assert {len(each) for each in shares} == {len(batches)}
    for batch, parts in zip(batches, zip(*shares, strict=True), strict=True):
        mean = sum(part.weight * part.examples[0].mean() for part in parts) / world
        torch.testing.assert_close(mean, batch[0].mean(), atol=1e-12, rtol=0)
        if len(batch[0]) >= world:
            assert torch.equal(torch.cat([part.examples[0] for part in parts]), batch[0])
