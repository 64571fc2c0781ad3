"""One training of a part with Lightning.

Builds the Lightning trainer that a `Descent` describes, resumes an unfinished training of the same data and
settings from its folder, and returns the part with its best weights, on its original device and in its
original precision.
"""

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback, EarlyStopping
from torch import Tensor

from rehearsal_torch.data.part import Trained, in_words
from rehearsal_torch.progress import Progress
from rehearsal_torch.training.callbacks import BestWeights, Ended, EpochCount, Finite, LastState
from rehearsal_torch.training.module import HELD_OUT, ExampleModule, TrainingModule

if TYPE_CHECKING:
    from rehearsal_torch.training.descent import Descent


def run(
    how: "Descent",
    part: Trained,
    examples: tuple[Tensor, ...],
    held_out: tuple[Tensor, ...] | None,
    name: str,
) -> list[tuple[int, str, float]]:
    """Trains one part in place; see `Descent.train`."""
    # Apple's GPUs support neither float64 nor the eigenvalue decomposition that exact norms need: only CUDA
    # (or ROCm) GPUs are used.
    if how.accelerator == "gpu" and not torch.cuda.is_available():
        raise RuntimeError(
            "expected a CUDA GPU for accelerator=gpu; torch sees none: choose trainer=cpu, or install the "
            "CUDA build of torch"
        )
    homes = {key: (value.device, value.dtype) for key, value in _tensors(part)}
    settings = _settings(how, examples, held_out)
    folder = None if how.folder is None else how.folder / name
    last = None if folder is None else folder / "last.ckpt"
    resumed = last if last is not None and last.exists() else None
    if resumed is not None:
        _agree(resumed, settings)
    module, best = TrainingModule(part.train(), settings), BestWeights()
    data = ExampleModule(
        _cast(how, examples), None if held_out is None else _cast(how, held_out), how.batch_size, how.seed
    )
    line = Progress(
        f"fitting {in_words(name)}",
        how.max_epochs,
        steps="epoch",
        at_most=held_out is not None and how.patience is not None,
        quiet=not how.progress,
    )
    with _quiet(), _threads(how.threads), torch.random.fork_rng(), line:
        trainer = Trainer(
            max_epochs=how.max_epochs,
            accelerator="cuda" if how.accelerator != "cpu" and torch.cuda.is_available() else "cpu",
            devices=how.devices if how.accelerator != "cpu" and torch.cuda.is_available() else 1,
            precision=how.precision,
            gradient_clip_val=how.clip,
            logger=[make(folder) for make in how.loggers.values()] if folder is not None else False,
            callbacks=_callbacks(how, best, folder, held_out is not None, line),
            enable_checkpointing=folder is not None,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            limit_val_batches=None if held_out is not None else 0,
            # Losses are logged per epoch; Lightning warns if this interval, which is unused then, is longer
            # than an epoch.
            log_every_n_steps=1,
            default_root_dir=folder,
        )
        try:
            trainer.fit(module, datamodule=data, ckpt_path=resumed, weights_only=True)
        except SystemExit as error:
            # Lightning exits with code 1 on an interrupt; the caller must see the interrupt.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise
    best.restore(module)
    part.zero_grad(set_to_none=True)
    for key, value in _tensors(part):
        device, dtype = homes[key]
        value.data = value.data.to(device, dtype)
    part.eval().finish()
    return module.readings


def _callbacks(
    how: "Descent", best: BestWeights, folder: Path | None, checked: bool, line: Progress
) -> list[Callback]:
    found: list[Callback] = [best, Ended(), Finite()] if checked else [Finite()]
    if checked and how.patience is not None:
        found.append(
            EarlyStopping(
                HELD_OUT, patience=how.patience, check_on_train_epoch_end=True, log_rank_zero_only=True
            )
        )
    if folder is not None:
        found.append(LastState(folder))
    found.append(EpochCount(line))
    return found + [make() for make in how.callbacks.values()]


def _settings(
    how: "Descent", examples: tuple[Tensor, ...], held_out: tuple[Tensor, ...] | None
) -> dict[str, Any]:
    """The settings that determine the result, as plain values: Lightning's checkpoints must be readable
    without unpickling.
    """
    decisive = {
        "batch_size": how.batch_size,
        "learning_rate": how.learning_rate,
        "patience": how.patience,
        "precision": how.precision,
        "seed": how.seed,
    }
    return {**decisive, "clip": how.clip, "examples": _digest(examples), "held_out": _digest(held_out or ())}


def _agree(path: Path, settings: dict[str, Any]) -> None:
    before = torch.load(path, map_location="cpu", weights_only=True)["hyper_parameters"]["settings"]
    odd = [key for key in settings if before.get(key) != settings[key]]
    if odd:
        differences = ", ".join(f"{key}: {before.get(key)!r} there, {settings[key]!r} here" for key in odd)
        raise ValueError(
            f"{path} belongs to another training ({differences}): choose another folder, or delete the file "
            "to start again"
        )


def _digest(examples: tuple[Tensor, ...]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.dtype}{tuple(example.shape)}".encode())
        digest.update(example.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _cast(how: "Descent", examples: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Detached examples in the precision of the training, so that no batch needs a conversion."""
    double = how.precision == "64-true"
    return tuple(
        example.detach().double() if double and example.is_floating_point() else example.detach()
        for example in examples
    )


def _tensors(part: Trained) -> list[tuple[str, Tensor]]:
    return [*part.named_parameters(), *part.named_buffers()]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Lightning's advice on devices and services."""
    talkers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [talker.level for talker in talkers]
    for talker in talkers:
        talker.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # Not using an available GPU is intended.
            warnings.filterwarnings("ignore", message=r"GPU available but not used")
            # Lightning's own use of torch's tree functions.
            warnings.filterwarnings("ignore", message=r".*LeafSpec.* is deprecated", category=FutureWarning)
            yield
    finally:
        for talker, level in zip(talkers, levels, strict=True):
            talker.setLevel(level)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Sets torch's number of threads, and restores it afterwards; None keeps it."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
