"""The harness around a part while it is trained.

Given a part with a loss l(examples), Adam descends the mean of l over batches. The harness keeps, for every
epoch, the mean training loss (over the epoch's batches, while the weights move) and the mean held-out loss
(after the epoch); for a mechanism both are negative log-likelihoods per transition. It is a harness only:
what is saved as a model is the part.

Batches that stay on the device.

All examples are put on the device once. Every epoch shuffles them by a permutation drawn from (seed, epoch)
alone, gathers them once and hands out slices, so that a step costs no indexing, no copy and no worker, and a
resumed training sees the batches that the uninterrupted one would have seen, without any saved random state.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from torch import Tensor

from rehearsal_torch.data.part import Trained
from rehearsal_torch.seeding import epoch_seed, generator


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

    def __init__(
        self, examples: tuple[Tensor, ...], size: int, seed: int = 0, epoch: Callable[[], int] | None = None
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
        """Batches in an epoch."""
        return -(-self.rows // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """The epoch's batches."""
        # A generator runs from its first `next` on, so the epoch is asked for when the epoch begins and not
        # when the loop is set up.
        rows = (
            self.examples
            if self.epoch is None
            else tuple(example[self.order(self.epoch()).to(example.device)] for example in self.examples)
        )
        yield from zip(*(example.split(self.size) for example in rows), strict=True)

    def order(self, epoch: int) -> Tensor:
        """The rows' order in an epoch, (n,) long; drawn on the CPU, so that it is the same on every
        device.
        """
        return torch.randperm(self.rows, generator=generator(epoch_seed(self.seed, epoch)))


class ExampleModule(LightningDataModule):
    """Training and held-out examples as Lightning wants them, for one process.

    Args:
        examples: Tensors (n, ...).
        held_out: Tensors (m, ...), or None.
        size: Rows in a training batch.
        seed: Decides the orders.
    """

    def __init__(
        self, examples: tuple[Tensor, ...], held_out: tuple[Tensor, ...] | None, size: int, seed: int
    ) -> None:
        super().__init__()
        self.examples, self.held_out, self.size, self.seed = examples, held_out, size, seed

    def setup(self, stage: str) -> None:  # noqa: ARG002
        """Refuses several processes.

        Raises:
            RuntimeError: if the trainer runs in more than one process: each would go through all the
                examples.
        """
        if self._trainer.world_size > 1:
            raise RuntimeError(
                f"expected one process for each training; got {self._trainer.world_size}. Examples are not "
                "divided among processes yet: each of them "
                "would go through all the rows, in the same order, and a step would be one batch taken "
                "several times. "
                "Set devices=1 and num_nodes=1, and train several models in several runs"
            )

    def train_dataloader(self) -> Batches:
        """The shuffled training batches."""
        return Batches(self._placed(self.examples), self.size, self.seed, lambda: self._trainer.current_epoch)

    def val_dataloader(self) -> Batches | list[Batches]:
        """The held-out examples in their order, in batches large enough to be quick and small enough to fit;
        none without them.
        """
        return [] if self.held_out is None else Batches(self._placed(self.held_out), max(self.size, 8192))

    def transfer_batch_to_device(
        self,
        batch: tuple[Tensor, ...],
        device: torch.device,  # noqa: ARG002
        dataloader_idx: int,  # noqa: ARG002
    ) -> tuple[Tensor, ...]:
        """The batch as it is: it lies on the device already."""
        return batch

    @property
    def _trainer(self) -> Trainer:
        if self.trainer is None:
            raise RuntimeError("expected a trainer; got none: batches are made for a running training only")
        return self.trainer

    def _placed(self, examples: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(example.to(self._trainer.strategy.root_device) for example in examples)


TRAIN, HELD_OUT = "train_loss", "held_out_loss"


class TrainingModule(LightningModule):
    """A part, its optimiser and its losses.

    Args:
        part: What is trained, in place.
        settings: Plain numbers and texts that decide the result; `learning_rate` and `seed` are read here,
            all are kept in Lightning's checkpoints.
    """

    def __init__(self, part: Trained, settings: dict[str, Any]) -> None:
        super().__init__()
        self.save_hyperparameters({"settings": settings})
        self.part, self.settings = part, settings
        self.readings: list[tuple[int, str, float]] = []
        self._running, self._checked = Mean(), Mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam; one fused call a step."""
        return torch.optim.Adam(self.part.parameters(), lr=self.settings["learning_rate"], fused=True)

    def on_train_epoch_start(self) -> None:
        """Draws that a loss may make itself depend on (seed, epoch) alone, as the batches do."""
        torch.manual_seed(epoch_seed(self.settings["seed"] + 1, self.current_epoch))
        self._running.begin(self.device)

    def training_step(self, batch: tuple[Tensor, ...], index: int) -> Tensor:  # noqa: ARG002
        """Mean loss of the batch."""
        loss = self.part.loss(*batch)
        self._running.add(loss, len(batch[0]))
        return loss

    def on_train_epoch_end(self) -> None:
        """Notes the epoch's mean training loss."""
        self._note(TRAIN, self._running)

    def on_validation_epoch_start(self) -> None:
        """Begins a mean of its own: validation runs inside the epoch."""
        self._checked.begin(self.device)

    def validation_step(self, batch: tuple[Tensor, ...], index: int) -> None:  # noqa: ARG002
        """Adds up the held-out loss."""
        self._checked.add(self.part.loss(*batch), len(batch[0]))

    def on_validation_epoch_end(self) -> None:
        """Notes the mean held-out loss."""
        self._note(HELD_OUT, self._checked)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keeps the readings, so that a resumed training has all of them."""
        checkpoint["readings"] = list(self.readings)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes the readings up again."""
        self.readings[:] = [
            (int(epoch), str(name), float(value)) for epoch, name, value in checkpoint["readings"]
        ]

    def _note(self, name: str, mean: "Mean") -> None:
        value = mean.value()
        self.readings.append((self.current_epoch, name, value))
        self.log(name, value, prog_bar=True, on_step=False, on_epoch=True, batch_size=1)


class Mean:
    """A mean over rows, summed on the device in float64."""

    def begin(self, device: torch.device) -> None:
        """Starts from nothing."""
        self.total, self.rows = torch.zeros((), device=device, dtype=torch.float64), 0

    def add(self, mean: Tensor, rows: int) -> None:
        """Adds a mean () of so many rows."""
        self.total += mean.detach() * rows
        self.rows += rows

    def value(self) -> float:
        """The mean of all rows so far; the only point at which the device is waited for."""
        return float(self.total) / self.rows
