"""Training of a part by stochastic gradient descent (Adam).

Given a part's loss and its examples, Adam minimises the mean loss,

    theta <- theta - alpha m / (sqrt(v) + epsilon),
    m, v: running means of the gradient and of its square,

over batches that are reshuffled each epoch. With held-out examples the weights of the epoch with the lowest
held-out loss are kept, and training ends after `patience` epochs without improvement. With a folder, a killed
training can be resumed, with results equal to the last bit to those of an uninterrupted training.

Source: Kingma and Ba (2015), Alg. 1; defaults as in Tsirtsis and Gomez-Rodriguez (2023), App. G.2.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rehearsal_torch.data.part import Examples, Trained
from rehearsal_torch.training.gpus import possible, settled

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers import Logger


class Descent:
    """The settings of trainings and their histories; built by the configuration group `trainer`.

    Args:
        max_epochs: The maximum number of epochs.
        batch_size: Rows per batch.
        learning_rate: Adam's alpha.
        patience: The number of epochs without a lower held-out loss after which training ends; None disables
            early stopping. Ignored without held-out examples.
        accelerator: Where to train: "cpu", "gpu" (CUDA), or "auto" for a GPU if there is one.
        devices: The number of processes, or of GPUs, that share a training: each takes its
            part of every batch. A loss that is no mean over rows is trained on one. GPUs may also be given as
            a sequence of their numbers.
        precision: "32-true" trains a part in its own precision, "64-true" in float64.
        progress: Shows a progress bar on a terminal, a few plain lines elsewhere.
        loggers: Name to one of Lightning's loggers, called with a folder of that name below the folder of a
            part's training as ``save_dir``.
        folder: Stores ``<part>/last.ckpt`` (the last and the best weights, and all that is needed to resume),
            and the loggers' files; None stores nothing.
        seed: Determines the order of the examples.
        clip: The maximum gradient norm; None does not clip.
        threads: The number of CPU threads during training. One is enough for batches of a few hundred rows;
            more are not faster, and change the order of summation. None keeps torch's own number.
        callbacks: Factories of further Lightning callbacks.

    Attributes:
        history: (epoch, name, value) of all trainings so far; names are ``<part>/train_loss`` and
            ``<part>/held_out_loss``.

    Raises:
        ValueError: if a number is out of range, or there are loggers and no folder.
    """

    def __init__(
        self,
        max_epochs: int = 100,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        patience: int | None = 10,
        accelerator: Literal["cpu", "gpu", "auto"] = "cpu",
        devices: int | Sequence[int] = 1,
        precision: Literal["32-true", "64-true"] = "32-true",
        progress: bool = True,
        loggers: Mapping[str, Callable[..., "Logger"]] | None = None,
        folder: str | Path | None = None,
        seed: int = 0,
        clip: float | None = None,
        threads: int | None = 1,
        callbacks: Mapping[str, Callable[[], "Callback"]] | None = None,
    ) -> None:
        if (
            min(max_epochs, batch_size, 1 if patience is None else patience) < 1
            or learning_rate <= 0
            or (clip is not None and clip <= 0)
        ):
            given = (
                f"max_epochs={max_epochs}, batch_size={batch_size}, learning_rate={learning_rate}, "
                f"patience={patience}, clip={clip}"
            )
            raise ValueError(f"expected numbers above zero; got {given}")
        if threads is not None and threads < 1:
            raise ValueError(f"expected at least one thread, or null for torch's own number; got {threads}")
        if accelerator not in ("cpu", "gpu", "auto"):
            raise ValueError(f"expected accelerator cpu, gpu or auto; got {accelerator!r}")
        if precision not in ("32-true", "64-true"):
            raise ValueError(
                "expected precision 32-true or 64-true (the spectral norms are exact, which lower "
                f"precisions are not); got {precision!r}"
            )
        if not possible(devices, accelerator):
            raise ValueError(
                "expected the number of processes or GPUs, or a list of different numbers of GPUs; got "
                f"devices={devices!r} and accelerator={accelerator}"
            )
        if loggers and folder is None:
            raise ValueError(
                f"loggers {sorted(loggers)} need a place to write to: set `folder`, or choose logger=none"
            )
        self.max_epochs, self.batch_size, self.learning_rate, self.patience = (
            max_epochs,
            batch_size,
            learning_rate,
            patience,
        )
        self.accelerator, self.devices, self.precision, self.progress = (
            accelerator,
            devices if isinstance(devices, int) else list(devices),
            precision,
            progress,
        )
        self.loggers, self.callbacks = dict(loggers or {}), dict(callbacks or {})
        self.folder = None if folder is None else Path(folder)
        self.seed, self.clip, self.threads = seed, clip, threads
        self.history: list[tuple[int, str, float]] = []

    def settled(self) -> "Descent":
        """A copy without a history, for other processes: the accelerator "auto" is what it is in this one."""
        made = copy(self)
        made.history, made.accelerator = [], settled(self.accelerator)
        return made

    def train(
        self,
        part: Trained,
        examples: Examples,
        held_out: Examples | None = None,
        name: str = "part",
    ) -> list[tuple[int, str, float]]:
        """Trains a part in place, restores its best weights, and calls its `finish`.

        Args:
            part: The part; it is returned to its device and precision.
            examples: The loss's arguments, (n, ...) each.
            held_out: The same for held-out rows, (m, ...) each, or None.
            name: The part's name in the history and the folder.

        Returns:
            The (epoch, name, value) of this training, which are appended to `history` as well.

        Raises:
            ValueError: if the folder holds a training on other data or with other settings, or a loss is not
                finite.
            RuntimeError: if a GPU is required and there is none.
        """
        from rehearsal_torch.training.harness import run  # Lightning takes seconds to import

        readings = [
            (epoch, f"{name}/{what}", value)
            for epoch, what, value in run(self, part, examples, held_out, name)
        ]
        self.history.extend(readings)
        return readings
