from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.training.module import Batches, ExampleModule


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


def test_without_an_epoch_the_order_stays():
    assert torch.equal(torch.cat([part for (part,) in Batches((torch.arange(5),), 2)]), torch.arange(5))


@pytest.mark.parametrize(
    ("rows", "size"),
    [((torch.zeros(0, 2),), 4), ((torch.zeros(3), torch.zeros(4)), 2), ((torch.zeros(3),), 0)],
)
def test_examples_that_make_no_batches_are_refused(rows: tuple[torch.Tensor, ...], size: int):
    with pytest.raises(ValueError, match="one positive number of rows"):
        Batches(rows, size)


def test_several_processes_are_refused_before_the_first_batch():
    examples = ExampleModule((torch.arange(8.0),), None, 4, 0)
    examples.trainer = SimpleNamespace(world_size=2)
    with pytest.raises(RuntimeError, match="expected one process for each training; got 2"):
        examples.setup("fit")
    examples.trainer = SimpleNamespace(world_size=1)
    examples.setup("fit")
