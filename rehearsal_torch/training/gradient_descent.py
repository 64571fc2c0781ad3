"""Training of a part by stochastic gradient descent (Adam): settings, devices, and checks of convergence.

Given a part's loss and its examples, Adam minimises the mean loss,

    theta <- theta - alpha m / (sqrt(v) + epsilon),
    m, v: running means of the gradient and of its square,

over batches that are reshuffled each epoch. With held-out examples the weights of the epoch with the lowest
held-out loss are kept, and training ends after `patience` epochs without improvement. With a folder, a killed
training can be resumed, with results equal to the last bit to those of an uninterrupted training.

    devices=2, accelerator=cpu         two processes
    devices=2, accelerator=gpu         the GPUs 0 and 1, a process each
    devices=[1, 3], accelerator=gpu    the GPUs 1 and 3
    accelerator=auto                   GPUs if there are some, else the CPU

A training has not converged if it ran for all its epochs, its least loss lies in the last tenth of them, and
the mean loss of that tenth is below the mean of the tenth before by more than a hundredth of the whole fall.
A training that was stopped early has learnt little if its least held-out loss is that of the first or second
epoch: the weights kept are almost those drawn at the start. Held-out losses are used where there are any.

Source: Kingma and Ba (2015), Alg. 1; defaults as in Tsirtsis and Gomez-Rodriguez (2023), App. G.2.
Prechelt (1998), Early stopping - but when?, for the criteria of stopping.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from inspect import signature
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, Union

import torch

from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.trainable_part import Examples, Trained, in_words
from rehearsal_torch.files.redaction import check_no_user
from rehearsal_torch.user_error import did_you_mean

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers import Logger


def possible(devices: object, accelerator: str) -> bool:
    """Whether devices are a number above zero, or distinct indices of GPUs."""
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        distinct = accelerator != "cpu" and 0 < len(devices) == len(set(devices))
        return all(type(number) is int and number >= 0 for number in devices) and (
            len(devices) == 1 or distinct
        )
    return type(devices) is int and devices >= 1


def turn(number: int, accelerator: str) -> int | list[int]:
    """The `devices` of job `number` of a sweep, whose jobs may run side by side: one of several GPUs, as an
    index in a list, else 1. A job that sees one GPU alone, as SLURM gives each its own, takes that.
    """
    available = 0 if accelerator == "cpu" or not torch.cuda.is_available() else torch.cuda.device_count()
    return [number % available] if available > 1 else 1


def settled(accelerator: Literal["cpu", "gpu", "auto"]) -> Literal["cpu", "gpu"]:
    """The accelerator in this process; for "auto", a GPU if there is one."""
    if accelerator == "auto":
        return "gpu" if torch.cuda.is_available() else "cpu"
    return accelerator


def gpus(devices: int | Sequence[int], accelerator: str) -> list[int]:
    """The indices of the GPUs that a training uses; empty on the CPU. RuntimeError if a GPU is missing."""
    # Apple's GPUs support neither float64 nor the eigenvalue decomposition that exact norms need: only CUDA
    # (or ROCm) GPUs are used.
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if accelerator == "gpu" and not count:
        raise RuntimeError(
            "expected a CUDA GPU for accelerator=gpu; torch sees none: choose trainer=cpu, or install "
            "the CUDA build of torch"
        )
    if accelerator == "cpu" or not count:
        return []
    indices = list(range(devices) if isinstance(devices, int) else devices)
    if any(number >= count for number in indices):
        raise RuntimeError(
            f"expected GPUs among those that torch sees, 0 to {count - 1}; got devices={devices!r}: choose "
            f"trainer.devices={count if isinstance(devices, int) else list(range(min(count, len(indices))))}"
        )
    return indices


OwnCallback = Union["Callback", Callable[[], "Callback"]]
# Arguments of Lightning's Trainer that are not flags here, and what to do instead.
OWN = {
    "logger": "choose logger=csv, or give `loggers`",
    "default_root_dir": "give `folder`",
    "model_registry": "no model is sent anywhere",
}


class Descent:
    """The settings of trainings and their histories; built by the configuration group `trainer`.

    Args:
        max_epochs: The maximum number of epochs.
        batch_size: Rows per batch.
        least_batches: The smallest number of batches of an epoch: fewer rows are passed several times in
            it, so that a small table is trained for as many steps as a large one.
        learning_rate: Adam's alpha.
        patience: The number of epochs without a lower held-out loss after which training ends; None disables
            early stopping. Ignored without held-out examples.
        accelerator: Where to train: "cpu", "gpu" (CUDA), or "auto" for a GPU if there is one.
        devices: The number of processes, or of GPUs, that share a training: each takes its part of every
            batch. A loss that is no mean over rows is trained on one. GPUs may also be given as a sequence of
            their numbers.
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
        callbacks: Further callbacks of Lightning, in a list or by names: each training gets a copy of each.
            Functions without arguments are called for each training, and make one.
        ckpt_path: Where trainings begin: the folder of a run, or one with ``<part>/last.ckpt``, or a file of
            Lightning's, which is read without running code from it; None begins anew. A training that
            `folder` holds goes on where it stopped.
        flags: Further arguments of Lightning's Trainer, such as ``gradient_clip_val``.

    Attributes:
        history: (epoch, name, value) of all trainings so far; names are ``<part>/train_loss`` and
            ``<part>/held_out_loss``.

    Raises:
        ValueError: if a number is out of range, there are loggers and no folder, a logger's address has a
            password in it, `ckpt_path` is not there, or Lightning's Trainer has no such flag.
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
        callbacks: "Mapping[str, OwnCallback] | Sequence[OwnCallback] | None" = None,
        ckpt_path: str | Path | None = None,
        least_batches: int = 1,
        **flags: Any,
    ) -> None:
        numbers = {
            "max_epochs": max_epochs,
            "batch_size": batch_size,
            "learning_rate": learning_rate,
            "patience": patience,
            "clip": clip,
            "least_batches": least_batches,
        }
        positive = all(value is None or value > 0 for value in numbers.values())
        require(positive and max_epochs >= 1 and batch_size >= 1, "numbers above zero", **numbers)
        require(
            threads is None or threads >= 1,
            "at least one thread, or null for torch's own number",
            threads=threads,
        )
        require(accelerator in ("cpu", "gpu", "auto"), "cpu, gpu or auto", accelerator=accelerator)
        require(
            precision in ("32-true", "64-true"),
            "32-true or 64-true (the spectral norms are exact, which lower precisions are not)",
            precision=precision,
        )
        require(
            possible(devices, accelerator),
            "the number of processes or GPUs, or a list of different numbers of GPUs",
            **{"devices": devices, "accelerator": accelerator},
        )
        if loggers and folder is None:
            raise ValueError(
                f"loggers {sorted(loggers)} need a place to write to: set `folder`, or choose logger=none"
            )
        for name, factory in (loggers or {}).items():
            check_no_user(getattr(factory, "keywords", {}).get("tracking_uri"), f"logger.{name}.tracking_uri")
        if ckpt_path is not None and not Path(ckpt_path).exists():
            raise ValueError(
                f"ckpt_path: there is no such file or folder ({ckpt_path}): give the folder of a run, or a "
                "file of Lightning's, such as last.ckpt"
            )
        if flags:
            _check_flags(flags, clip)
        self.max_epochs, self.batch_size, self.least_batches = max_epochs, batch_size, least_batches
        self.learning_rate, self.patience = learning_rate, patience
        self.accelerator, self.precision, self.progress = accelerator, precision, progress
        self.devices = devices if isinstance(devices, int) else list(devices)
        self.loggers = dict(loggers or {})
        self.callbacks = list(callbacks.values() if isinstance(callbacks, Mapping) else callbacks or ())
        self.folder = None if folder is None else Path(folder)
        self.ckpt_path, self.flags = None if ckpt_path is None else Path(ckpt_path), flags
        self.seed, self.clip, self.threads = seed, clip, threads
        self.history: list[tuple[int, str, float]] = []

    def settled(self) -> "Descent":
        """A copy for other processes, without a history, and with this process's accelerator for "auto"."""
        duplicate = copy(self)
        duplicate.history, duplicate.accelerator = [], settled(self.accelerator)
        return duplicate

    @staticmethod
    def further_arguments() -> tuple[str, ...]:
        """The flags of Lightning's Trainer that `flags` may hold."""
        from lightning.pytorch import Trainer  # takes seconds to import

        return tuple(name for name in signature(Trainer).parameters if name not in OWN)

    def train(
        self, part: Trained, examples: Examples, held_out: Examples | None = None, name: str = "part"
    ) -> list[tuple[int, str, float]]:
        """Trains a part in place, with the loss's arguments (n, ...) for training and for held-out rows;
        restores its best weights, its device and precision, and calls its `finish`.

        Returns:
            The (epoch, name, value) of this training, which are appended to `history` as well.

        Raises:
            ValueError: if the folder holds a training on other data or with other settings, or a loss is not
                finite.
            RuntimeError: if a GPU is required and there is none.
        """
        from rehearsal_torch.training.lightning_training import run  # Lightning takes seconds to import

        losses = run(self, part, examples, held_out, name)
        readings = [(epoch, f"{name}/{loss}", value) for epoch, loss, value in losses]
        self.history.extend(readings)
        return readings

    def gpus(self) -> list[int]:
        """The GPUs of these settings, as by `gpus`."""
        return gpus(self.devices, self.accelerator)


def _check_flags(flags: Mapping[str, Any], clip: float | None) -> None:
    """Raises ValueError for unknown flags of Lightning's Trainer, and those with a setting of their own."""
    allowed = Descent.further_arguments()
    for name in flags:
        if name in OWN:
            raise ValueError(f"{name} is set by a training itself: {OWN[name]}")
        if name not in allowed:
            settings = [argument for argument in signature(Descent).parameters if argument != "flags"]
            remedy = did_you_mean(name, [*settings, *allowed]) or "see the arguments of Lightning's Trainer"
            raise ValueError(
                f"expected a setting of a training or a flag of Lightning's Trainer; got {name}: {remedy}"
            )
    if clip is not None and flags.get("gradient_clip_val") is not None:
        raise ValueError("clip and gradient_clip_val are one: leave one of them out")


TRAIN, HELD_OUT = "train_loss", "held_out_loss"
TENTH, FALL, FIRST = 0.1, 0.01, 2
Readings = Mapping[str, Sequence[tuple[float, float]]]


def faults(metrics: Readings, most: int) -> list[str]:
    """Warnings of unconverged trainings, of at most `most` epochs, in sentences without full stops. `metrics`
    are name to (epoch, value): ``PART/train_loss`` and perhaps ``PART/held_out_loss``; others are ignored.
    """
    unconverged, stopped_early = list[str](), list[str]()
    held_out = False
    for name in metrics:
        part, _, kind = name.rpartition("/")
        if kind != TRAIN:
            continue
        training = _values(metrics[name])
        validation = _values(metrics.get(name.removesuffix(TRAIN) + HELD_OUT, ()))
        losses = validation or training
        if len(training) >= most and still_falling(losses):
            unconverged.append(in_words(part))
            held_out = held_out or bool(validation)
        elif validation and len(validation) < most and validation.index(min(validation)) < FIRST:
            stopped_early.append(in_words(part))
    sentences = []
    if unconverged:
        label = "held-out loss" if held_out else "loss"
        sentences.append(
            f"training not converged: the {label} of {joined(unconverged)} was still falling in the last of "
            f"{most} epochs: raise trainer.max_epochs"
        )
    if stopped_early:
        sentences.append(
            f"training ended at once: the held-out loss of {joined(stopped_early)} was smallest in the first "
            f"{FIRST} epochs, and early stopping kept these weights: lower trainer.learning_rate, or look "
            "for held-out rows that differ from the others"
        )
    return sentences


def still_falling(losses: Sequence[float]) -> bool:
    """Whether losses, one for each epoch, were still falling at the end."""
    width = max(int(TENTH * len(losses)), 1)
    if len(losses) < 2 * width or len(losses) < 2:
        return False
    fall = losses[0] - min(losses)
    best = len(losses) - 1 - losses[::-1].index(min(losses))
    recent, previous = fmean(losses[-width:]), fmean(losses[-2 * width : -width])
    return fall > 0 and best >= len(losses) - width and previous - recent > FALL * fall


def joined(names: Sequence[str]) -> str:
    """Names in a row, those of several models of an ensemble by their numbers."""
    numbers = [name.split()[1] for name in names if name.endswith(" of the ensemble")]
    if len(numbers) == len(names) > 1:
        return f"models {', '.join(numbers[:-1])} and {numbers[-1]} of the ensemble"
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def _values(points: Sequence[tuple[float, float]]) -> list[float]:
    """The values in the order of their epochs; those of a resumed training may have been read twice."""
    return [value for _, value in sorted(dict(points).items())]
