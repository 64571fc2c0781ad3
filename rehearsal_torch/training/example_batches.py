"""Batches of examples, reshuffled each epoch by a permutation that depends on (seed, epoch) alone.

Examples are permuted as a whole, and gathered in blocks of many batches.

Several processes share each batch: each takes successive rows of it, and weights its mean loss such that the
mean over the processes is that over the batch.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from rehearsal_torch.data.part import Examples
from rehearsal_torch.seeding import epoch_seed, generator

BLOCK = 65_536
"""Rows that are gathered at a time, about."""
ALIGNED = 64
"""Batches of a block are a multiple of this number, so that each batch lies at the same place of a cache line
as in one block of all rows: the last bits of a product may depend on it."""


class Batches:
    """Batches of examples, reshuffled each epoch.

    Args:
        examples: Tensors (n, ...) with the same n.
        size: Rows per batch; the last batch may be smaller.
        seed: Determines the orders.
        epoch: Returns the current epoch; None keeps the rows in their order.

    Raises:
        ValueError: if there are no rows, the tensors disagree on n, or size is below 1.
    """

    def __init__(
        self, examples: Examples, size: int, seed: int = 0, epoch: Callable[[], int] | None = None
    ) -> None:
        counts = {len(example) for example in examples}
        if len(counts) != 1 or 0 in counts or size < 1:
            raise ValueError(
                "expected examples with one positive number of rows and a batch size of at least 1; got "
                f"rows {sorted(counts)}, size {size}"
            )
        self.examples, self.size, self.seed, self.epoch = examples, size, seed, epoch
        self.rows = counts.pop()

    def __len__(self) -> int:
        """The number of batches per epoch."""
        return -(-self.rows // self.size)

    def __iter__(self) -> Iterator[Examples]:
        """The batches of the current epoch."""
        # A generator starts at its first `next`, so the epoch is read when the epoch begins and not when the
        # loop is set up.
        if self.epoch is None:
            yield from _slices(self.examples, self.size)
            return
        for rows in _gathered(self.examples, self.order(self.epoch()), self.size):
            yield from _slices(rows, self.size)

    def order(self, epoch: int) -> Tensor:
        """The order of the rows in an epoch, (n,) long; drawn on the CPU, so that it is the same on every
        device.
        """
        return torch.randperm(self.rows, generator=generator(epoch_seed(self.seed, epoch)))


class Share(NamedTuple):
    """One process's share of a batch.

    Attributes:
        weight: By which its mean loss is multiplied; one if the shares are equal.
        rows: For how many rows of the batch it stands.
        examples: Its rows.
    """

    weight: float
    rows: float
    examples: Examples


class Shares:
    """The shares of one of several processes.

    Args:
        batches: The batches of all processes.
        rank: The process, 0 ... world - 1.
        world: The number of processes.
    """

    def __init__(self, batches: Batches, rank: int, world: int) -> None:
        self.batches, self.rank, self.world = batches, rank, world

    def __len__(self) -> int:
        """The number of batches per epoch, the same for all processes."""
        return len(self.batches)

    def __iter__(self) -> Iterator[Share]:
        """The shares; of a batch with fewer rows than processes, each takes all rows."""
        for batch in self.batches:
            rows = len(batch[0])
            if rows < self.world:
                yield Share(1.0, rows / self.world, batch)
                continue
            begin, end = (number * rows // self.world for number in (self.rank, self.rank + 1))
            share = tuple(example[begin:end] for example in batch)
            yield Share((end - begin) * self.world / rows, end - begin, share)


def _gathered(rows: Examples, order: Tensor, size: int) -> Iterator[Examples]:
    """Rows in an order, in blocks of many batches."""
    block = size * ALIGNED * -(-BLOCK // (size * ALIGNED))
    for places in order.split(block):
        yield tuple(examples[places.to(examples.device)] for examples in rows)


def _slices(rows: Examples, size: int) -> Iterator[Examples]:
    if len(rows[0]):
        yield from zip(*(examples.split(size) for examples in rows), strict=True)
