"""The harness around a part while it is trained.

Given a part with a loss l(examples), Adam descends the mean of l over batches. The harness keeps, for every epoch,
the mean training loss (over the epoch's batches, while the weights move) and the mean held-out loss (after the
epoch); for a mechanism both are negative log-likelihoods per transition. It is a harness only: what is saved as a
model is the part.
"""

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from rehearsal_torch.data.fitted import Trained
from rehearsal_torch.training.batches import mixed

TRAIN, HELD_OUT = "train_loss", "held_out_loss"


class TrainingModule(LightningModule):
    """A part, its optimiser and its losses.

    Args:
        part: What is trained, in place.
        settings: Plain numbers and texts that decide the result; `learning_rate` and `seed` are read here, all are kept in Lightning's checkpoints.
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
        torch.manual_seed(mixed(self.settings["seed"] + 1, self.current_epoch))
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
        self.readings[:] = [(int(epoch), str(name), float(value)) for epoch, name, value in checkpoint["readings"]]

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
