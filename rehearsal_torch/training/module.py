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
        self._total, self._rows = torch.zeros(()), 0

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam; one fused call a step."""
        return torch.optim.Adam(self.part.parameters(), lr=self.settings["learning_rate"], fused=True)

    def on_train_epoch_start(self) -> None:
        """Draws that a loss may make itself depend on (seed, epoch) alone, as the batches do."""
        torch.manual_seed(mixed(self.settings["seed"] + 1, self.current_epoch))
        self._begin()

    def training_step(self, batch: tuple[Tensor, ...], index: int) -> Tensor:  # noqa: ARG002
        """Mean loss of the batch."""
        loss = self.part.loss(*batch)
        self._add(loss, batch)
        return loss

    def on_train_epoch_end(self) -> None:
        """Notes the epoch's mean training loss."""
        self._note(TRAIN)

    def on_validation_epoch_start(self) -> None:
        """Puts the training sum aside: validation runs inside the epoch."""
        self._aside = (self._total, self._rows)
        self._begin()

    def validation_step(self, batch: tuple[Tensor, ...], index: int) -> None:  # noqa: ARG002
        """Adds up the held-out loss."""
        self._add(self.part.loss(*batch), batch)

    def on_validation_epoch_end(self) -> None:
        """Notes the mean held-out loss."""
        self._note(HELD_OUT)
        self._total, self._rows = self._aside

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keeps the readings, so that a resumed training has all of them."""
        checkpoint["readings"] = list(self.readings)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Takes the readings up again."""
        self.readings[:] = [(int(epoch), str(name), float(value)) for epoch, name, value in checkpoint["readings"]]

    def _begin(self) -> None:
        self._total, self._rows = torch.zeros((), device=self.device), 0

    def _add(self, loss: Tensor, batch: tuple[Tensor, ...]) -> None:
        self._total = self._total + loss.detach() * len(batch[0])
        self._rows += len(batch[0])

    def _note(self, name: str) -> None:
        value = float(self._total) / self._rows
        self.readings.append((self.current_epoch, name, value))
        self.log(name, value, prog_bar=True, on_step=False, on_epoch=True, batch_size=1)
