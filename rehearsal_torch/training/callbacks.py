"""Lightning callbacks of a training: best weights, last state, finite losses, progress."""

import math
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping
from torch import Tensor

from rehearsal_torch.progress import Progress
from rehearsal_torch.training.module import HELD_OUT, TrainingModule


class BestWeights(Callback):
    """Keeps the weights of the epoch with the lowest held-out loss.

    They are part of the callback's state, hence of ``last.ckpt``, so that a resumed training has them even if
    its folder has been moved.
    """

    def __init__(self) -> None:
        self.score, self.weights = math.inf, dict[str, Tensor]()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keeps the weights if they are the best so far."""
        score = float(trainer.callback_metrics[HELD_OUT])
        if score < self.score:
            self.score, self.weights = (
                score,
                {name: value.detach().clone() for name, value in pl_module.state_dict().items()},
            )

    def state_dict(self) -> dict[str, Any]:
        """The state written to ``last.ckpt``."""
        return {"score": self.score, "weights": self.weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state from ``last.ckpt``."""
        self.score, self.weights = float(state_dict["score"]), dict(state_dict["weights"])

    def restore(self, module: LightningModule) -> None:
        """Restores the best weights; leaves the module unchanged if there were no held-out examples."""
        if self.weights:
            module.load_state_dict(self.weights)


class LastState(Checkpoint):
    """Writes ``last.ckpt`` at the end of every training epoch, after the losses and the other callbacks'
    states have been updated.

    Lightning's own checkpoint callback saves its last state only together with a best one, and loses both
    when the folder is moved.

    Args:
        folder: The target folder; created if missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Writes a temporary file, then renames it: a killed process leaves the previous state intact."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # All processes of a training take part, and the first one writes.
        trainer.save_checkpoint(self.folder / "last.tmp")
        if trainer.is_global_zero:
            (self.folder / "last.tmp").replace(self.folder / "last.ckpt")


class Ended(Callback):
    """Prevents a resumed training from continuing if early stopping had ended it (Lightning does not store
    that).
    """

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Stops at once if patience had been exhausted."""
        trainer.should_stop = any(
            isinstance(stop, EarlyStopping) and stop.wait_count >= stop.patience
            for stop in trainer.early_stopping_callbacks
        )


class Finite(Callback):
    """Ends a training with non-finite losses or weights, with an explanation."""

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Checks the held-out loss."""
        self._check_loss(trainer, HELD_OUT)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Checks the weights."""
        if not all(bool(torch.isfinite(weight).all()) for weight in pl_module.parameters()):
            raise ValueError(self._message(trainer, "the weights are not finite"))

    def _check_loss(self, trainer: Trainer, name: str) -> None:
        value = float(trainer.callback_metrics[name])
        if not math.isfinite(value):
            raise ValueError(self._message(trainer, f"{name} is {value}"))

    def _message(self, trainer: Trainer, what: str) -> str:
        return (
            f"expected finite losses; in epoch {trainer.current_epoch} {what}: lower learning_rate, set "
            "clip, or look for extreme rows in the data"
        )


class EpochCount(Callback):
    """Tells a line of progress which epoch has ended, and its losses.

    Args:
        line: The line of the training.
    """

    def __init__(self, line: Progress) -> None:
        self.line = line

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Counts the epochs of a resumed training as done."""
        self.line.begin(trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Counts the epoch; its held-out loss, or without one that of the previous epoch's training."""
        assert isinstance(pl_module, TrainingModule)
        _, name, value = pl_module.readings[-1] if pl_module.readings else (0, "", 0.0)
        note = f"{name.replace('_', ' ').replace('held out', 'held-out')} {value:.4f}" if name else ""
        self.line.at(trainer.current_epoch + 1, note)
