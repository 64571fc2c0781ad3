from types import SimpleNamespace

import torch

from rehearsal_torch.training.example_batches import Batches, Shares
from rehearsal_torch.training.module import TrainingData


def of_process(rank: int, world: int) -> SimpleNamespace:
    strategy = SimpleNamespace(root_device=torch.device("cpu"))
    return SimpleNamespace(strategy=strategy, world_size=world, global_rank=rank, current_epoch=0)


def test_each_process_takes_its_share_of_every_batch():
    rows = (torch.arange(9.0),)
    examples = TrainingData(rows, rows, 4, 0)
    examples.trainer = of_process(0, 1)
    alone = examples.train_dataloader()
    assert isinstance(alone, Batches)
    whole = [part.tolist() for (part,) in alone]
    parts = []
    for rank in range(2):
        examples.trainer = of_process(rank, 2)
        shares = examples.train_dataloader()
        assert isinstance(shares, Shares)
        parts.append([share.examples[0].tolist() for share in shares])
        checks = [share.examples[0].tolist() for share in examples.val_dataloader()]
        assert checks == [[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0, 8.0]][rank]]
    assert [one + other for one, other in zip(*parts, strict=True)][:2] == whole[:2]
    assert parts[0][2] == parts[1][2] == whole[2], "one row for two processes"


def test_there_are_no_held_out_batches_without_held_out_rows():
    examples = TrainingData((torch.arange(9.0),), None, 4, 0)
    examples.trainer = of_process(0, 1)
    assert examples.val_dataloader() == []
