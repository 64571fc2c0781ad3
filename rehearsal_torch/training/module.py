"""The Lightning module and data module of a training.

Given a part with a loss l(examples), Adam minimises the mean of l over batches. The module records for every
epoch the mean training loss (over the epoch's batches, while the weights change) and the mean held-out loss
(after the epoch); for a mechanism both are negative log-likelihoods per transition. The module exists during
training only: the saved model is the part.

All examples are moved to the device once. Every epoch shuffles them by a permutation that depends on (seed,
epoch) alone, gathers them once and yields slices, so that a step needs no indexing, copy or worker, and a
resumed training has the batches of an uninterrupted one without any saved random state.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from torch import Tensor

from rehearsal_torch.data.part import Trained
from rehearsal_torch.seeding import epoch_seed, generator


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
        """The number of batches per epoch."""
        return -(-self.rows // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """The batches of the current epoch."""
        # A generator starts at its first `next`, so the epoch is read when the epoch begins and not when the
        # loop is set up.
        rows = (
            self.examples
            if self.epoch is None
            else tuple(example[self.order(self.epoch()).to(example.device)] for example in self.examples)
        )
        yield from zip(*(example.split(self.size) for example in rows), strict=True)

    def order(self, epoch: int) -> Tensor:
        """The order of the rows in an epoch, (n,) long; drawn on the CPU, so that it is the same on every
        device.
        """
        return torch.randperm(self.rows, generator=generator(epoch_seed(self.seed, epoch)))


class ExampleModule(LightningDataModule):
    """Training and held-out examples as a Lightning data module, for one process.

    Args:
        examples: Tensors (n, ...).
        held_out: Tensors (m, ...), or None.
        size: Rows per training batch.
        seed: Decides the orders.
    """

    def __init__(
        self, examples: tuple[Tensor, ...], held_out: tuple[Tensor, ...] | None, size: int, seed: int
    ) -> None:
        super().__init__()
        self.examples, self.held_out, self.size, self.seed = examples, held_out, size, seed

    def setup(self, stage: str) -> None:  # noqa: ARG002
        """Refuses to run in several processes.

        Raises:
            RuntimeError: if the trainer runs in more than one process: each would process all the examples.
        """
        if self._trainer.world_size > 1:
            raise RuntimeError(
                f"expected one process for each training; got {self._trainer.world_size}. Examples are not "
                "divided among processes yet: each of them would process all rows in the same order, and "
                "every step would repeat one batch. Set devices=1 and num_nodes=1, and train several models "
                "in several runs"
            )

    def train_dataloader(self) -> Batches:
        """The shuffled training batches."""
        return Batches(self._placed(self.examples), self.size, self.seed, lambda: self._trainer.current_epoch)

    def val_dataloader(self) -> Batches | list[Batches]:
        """The held-out examples in their order, in batches of at least 8,192 rows for speed; empty without
        them.
        """
        return [] if self.held_out is None else Batches(self._placed(self.held_out), max(self.size, 8192))

    def transfer_batch_to_device(
        self,
        batch: tuple[Tensor, ...],
        device: torch.device,  # noqa: ARG002
        dataloader_idx: int,  # noqa: ARG002
    ) -> tuple[Tensor, ...]:
        """The batch unchanged: it is on the device already."""
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
        settings: Plain numbers and strings that determine the result; `learning_rate` and `seed` are read
            here, all are stored in Lightning's checkpoints.
    """

    def __init__(self, part: Trained, settings: dict[str, Any]) -> None:
        super().__init__()
        self.save_hyperparameters({"settings": settings})
        self.part, self.settings = part, settings
        self.readings: list[tuple[int, str, float]] = []
        self._running, self._checked = Mean(), Mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, with one fused call per step."""
        return torch.optim.Adam(self.part.parameters(), lr=self.settings["learning_rate"], fused=True)

    def on_train_epoch_start(self) -> None:
        """Seeds the random draws of the loss by (seed, epoch) alone, like the batches."""
        torch.manual_seed(epoch_seed(self.settings["seed"] + 1, self.current_epoch))
        self._running.begin(self.device)

    def training_step(self, batch: tuple[Tensor, ...], index: int) -> Tensor:  # noqa: ARG002
        """Mean loss of the batch."""
        loss = self.part.loss(*batch)
        self._running.add(loss, len(batch[0]))
        return loss

    def on_train_epoch_end(self) -> None:
        """Records the epoch's mean training loss."""
        self._note(TRAIN, self._running)

    def on_validation_epoch_start(self) -> None:
        """Starts a separate mean: validation runs inside the training epoch."""
        self._checked.begin(self.device)

    def validation_step(self, batch: tuple[Tensor, ...], index: int) -> None:  # noqa: ARG002
        """Accumulates the held-out loss."""
        self._checked.add(self.part.loss(*batch), len(batch[0]))

    def on_validation_epoch_end(self) -> None:
        """Records the mean held-out loss."""
        self._note(HELD_OUT, self._checked)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Stores the readings, so that a resumed training has all of them."""
        checkpoint["readings"] = list(self.readings)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restores the readings."""
        self.readings[:] = [
            (int(epoch), str(name), float(value)) for epoch, name, value in checkpoint["readings"]
        ]

    def _note(self, name: str, mean: "Mean") -> None:
        value = mean.value()
        self.readings.append((self.current_epoch, name, value))
        self.log(name, value, prog_bar=True, on_step=False, on_epoch=True, batch_size=1)


class Mean:
    """A running mean over rows, accumulated on the device in float64."""

    def begin(self, device: torch.device) -> None:
        """Resets the mean."""
        self.total, self.rows = torch.zeros((), device=device, dtype=torch.float64), 0

    def add(self, mean: Tensor, rows: int) -> None:
        """Adds the mean () of `rows` rows."""
        self.total += mean.detach() * rows
        self.rows += rows

    def value(self) -> float:
        """The mean of all rows so far; the only call that synchronises with the device."""
        return float(self.total) / self.rows
