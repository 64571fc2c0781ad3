"""Batches that stay on the device.

All examples are put on the device once. Every epoch shuffles them by a permutation drawn from (seed, epoch) alone,
gathers them once and hands out slices, so that a step costs no indexing, no copy and no worker, and a resumed
training sees the batches that the uninterrupted one would have seen, without any saved random state.
"""

from collections.abc import Callable, Iterator

import torch
from lightning.pytorch import LightningDataModule, Trainer
from torch import Tensor


class Batches:
    """Slices of examples, in an order of its own each epoch.

    Args:
        examples: Tensors (n, ...) with one n.
        size: Rows in a batch; the last one may be smaller.
        seed: Decides the orders.
        epoch: Tells the current epoch; None keeps the rows in their order.

    Raises:
        ValueError: if there are no rows, the tensors disagree on n, or size is below 1.
    """

    def __init__(self, examples: tuple[Tensor, ...], size: int, seed: int = 0, epoch: Callable[[], int] | None = None) -> None:
        counts = {len(example) for example in examples}
        if len(counts) != 1 or 0 in counts or size < 1:
            raise ValueError(f"expected examples with one positive number of rows and a batch size of at least 1; got rows {sorted(counts)}, size {size}")
        self.examples, self.size, self.seed, self.epoch = examples, size, seed, epoch
        self.rows = counts.pop()

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-self.rows // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """The epoch's batches."""
        # A generator runs from its first `next` on, so the epoch is asked for when the epoch begins and not when the loop is set up.
        rows = self.examples if self.epoch is None else tuple(example[self.order(self.epoch()).to(example.device)] for example in self.examples)
        yield from zip(*(example.split(self.size) for example in rows), strict=True)

    def order(self, epoch: int) -> Tensor:
        """The rows' order in an epoch, (n,) long; drawn on the CPU, so that it is the same on every device."""
        return torch.randperm(self.rows, generator=torch.Generator().manual_seed(mixed(self.seed, epoch)))


class ExampleModule(LightningDataModule):
    """Training and held-out examples as Lightning wants them, for one process.

    Args:
        examples: Tensors (n, ...).
        held_out: Tensors (m, ...), or None.
        size: Rows in a training batch.
        seed: Decides the orders.
    """

    def __init__(self, examples: tuple[Tensor, ...], held_out: tuple[Tensor, ...] | None, size: int, seed: int) -> None:
        super().__init__()
        self.examples, self.held_out, self.size, self.seed = examples, held_out, size, seed

    def setup(self, stage: str) -> None:  # noqa: ARG002
        """Refuses several processes.

        Raises:
            RuntimeError: if the trainer runs in more than one process: each would go through all the examples.
        """
        if self._trainer.world_size > 1:
            raise RuntimeError(
                f"expected one process for each training; got {self._trainer.world_size}. Examples are not divided among processes yet: each of them "
                "would go through all the rows, in the same order, and a step would be one batch taken several times. "
                "Set devices=1 and num_nodes=1, and train several models in several runs"
            )

    def train_dataloader(self) -> Batches:
        """The shuffled training batches."""
        return Batches(self._placed(self.examples), self.size, self.seed, lambda: self._trainer.current_epoch)

    def val_dataloader(self) -> Batches | list[Batches]:
        """The held-out examples in their order, in batches large enough to be quick and small enough to fit; none without them."""
        return [] if self.held_out is None else Batches(self._placed(self.held_out), max(self.size, 8192))

    def transfer_batch_to_device(self, batch: tuple[Tensor, ...], device: torch.device, dataloader_idx: int) -> tuple[Tensor, ...]:  # noqa: ARG002
        """The batch as it is: it lies on the device already."""
        return batch

    @property
    def _trainer(self) -> Trainer:
        if self.trainer is None:
            raise RuntimeError("expected a trainer; got none: batches are made for a running training only")
        return self.trainer

    def _placed(self, examples: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(example.to(self._trainer.strategy.root_device) for example in examples)


def mixed(seed: int, epoch: int) -> int:
    """One 63-bit seed for a pair, unlike the seeds of neighbouring pairs (a splitmix64 step)."""
    state = (seed * 0x9E3779B97F4A7C15 + (epoch + 1) * 0xBF58476D1CE4E5B9) % 2**64
    state = (state ^ (state >> 30)) * 0x94D049BB133111EB % 2**64
    return (state ^ (state >> 31)) >> 1
