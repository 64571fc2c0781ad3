"""One training of a part with Lightning.

Builds the Lightning trainer that a `Descent` describes, resumes an unfinished training of the same data and
settings from its folder, and returns the part with its best weights, on its original device and in its
original precision.
"""

import copy
import hashlib
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback, EarlyStopping
from torch import Tensor

from rehearsal_torch.data.part import Examples, Trained, in_words
from rehearsal_torch.progress import Progress
from rehearsal_torch.training.callbacks import BestWeights, Ended, EpochCount, Finite, LastState
from rehearsal_torch.training.example_batches import BLOCK
from rehearsal_torch.training.gpus import alone, current_kept, gpus
from rehearsal_torch.training.module import HELD_OUT, ExampleModule, TrainingModule
from rehearsal_torch.training.peers import peers, strategy
from rehearsal_torch.workers import threads

if TYPE_CHECKING:
    from rehearsal_torch.training.descent import Descent


def run(
    how: "Descent",
    part: Trained,
    examples: Examples,
    held_out: Examples | None,
    name: str,
) -> list[tuple[int, str, float]]:
    """Trains one part in place; see `Descent.train`."""
    alone()
    used = gpus(how.devices, how.accelerator)
    world = _processes(how, part, used)
    used = used[:world]
    homes = {key: (value.device, value.dtype) for key, value in _tensors(part)}
    settings = _settings(how, examples, held_out, world, used)
    folder = None if how.folder is None else how.folder / name
    last = None if folder is None else folder / "last.ckpt"
    resumed = last if last is not None and last.exists() else None
    if resumed is not None:
        _agree(resumed, settings)
    examples, held_out = _cast(how, examples), None if held_out is None else _cast(how, held_out)
    others = [
        (_silent(how), copy.deepcopy(part), examples, held_out, settings, folder, resumed, used)
        for _ in range(world - 1)
    ]
    module, best = TrainingModule(part.train(), settings), BestWeights()
    line = Progress(
        f"fitting {in_words(name)}",
        how.max_epochs,
        steps="epoch",
        at_most=held_out is not None and how.patience is not None,
        quiet=not how.progress,
    )
    sharing = peers(_peer, others, used) if others else nullcontext(lambda: None)
    with current_kept(used), sharing as whole, threads(how.threads), line:
        found = _callbacks(how, best, folder, held_out is not None, line, whole)
        _fit(how, module, examples, held_out, found, folder, resumed, used, 0, world)
    best.restore(module)
    part.zero_grad(set_to_none=True)
    for key, value in _tensors(part):
        device, dtype = homes[key]
        value.data = value.data.to(device, dtype)
    part.eval().finish()
    return module.readings


def _fit(
    how: "Descent",
    module: TrainingModule,
    examples: Examples,
    held_out: Examples | None,
    found: list[Callback],
    folder: Path | None,
    resumed: Path | None,
    used: list[int],
    rank: int,
    world: int,
) -> None:
    """Trains a module, as one of several processes if `world` is above 1; on the GPUs `used`, if there are
    some, a process each.
    """
    data = ExampleModule(examples, held_out, how.batch_size, how.seed)
    with _quiet(), torch.random.fork_rng(devices=used[rank : rank + 1]):
        trainer = Trainer(
            max_epochs=how.max_epochs,
            accelerator="cuda" if used else "cpu",
            devices=used or world,
            strategy="auto" if world == 1 else strategy(rank, used),
            use_distributed_sampler=False,
            precision=how.precision,
            gradient_clip_val=how.clip,
            logger=[make(folder) for make in how.loggers.values()] if folder is not None else False,
            callbacks=found,
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


def _peer(
    rank: int,
    world: int,
    how: "Descent",
    part: Trained,
    examples: Examples,
    held_out: Examples | None,
    settings: dict[str, Any],
    folder: Path | None,
    resumed: Path | None,
    used: list[int],
) -> None:
    """What a further process of a training runs."""
    checked = held_out is not None
    line = Progress("", how.max_epochs, steps="epoch", at_most=False, quiet=True)
    found = _callbacks(how, BestWeights(), folder, checked, line)
    module = TrainingModule(part.train(), settings)
    with threads(how.threads):
        _fit(how, module, examples, held_out, found, folder, resumed, used, rank, world)


def _silent(how: "Descent") -> "Descent":
    """The settings for a further process, which reports nothing."""
    other = copy.copy(how)
    other.loggers, other.callbacks, other.history, other.progress = {}, {}, [], False
    return other


def _processes(how: "Descent", part: Trained, used: Sequence[int]) -> int:
    """The number of processes of a training: one for a loss that is not a mean over rows."""
    count = len(used) or (how.devices if isinstance(how.devices, int) else 1)
    return count if part.uses_held_out else 1


def _callbacks(
    how: "Descent",
    best: BestWeights,
    folder: Path | None,
    checked: bool,
    line: Progress,
    whole: Callable[[], None] = lambda: None,
) -> list[Callback]:
    found: list[Callback] = [best, Ended(), Finite()] if checked else [Finite()]
    if checked and how.patience is not None:
        found.append(
            EarlyStopping(
                HELD_OUT, patience=how.patience, check_on_train_epoch_end=True, log_rank_zero_only=True
            )
        )
    if folder is not None:
        found.append(LastState(folder, whole))
    found.append(EpochCount(line))
    return found + [make() for make in how.callbacks.values()]


def _settings(
    how: "Descent",
    examples: Examples,
    held_out: Examples | None,
    world: int,
    used: Sequence[int],
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
    return {
        **decisive,
        "clip": how.clip,
        "examples": _digest(examples),
        "held_out": _digest(() if held_out is None else held_out),
        **({"devices": world} if world > 1 else {}),
        # A GPU sums in another order. Its number does not matter.
        **({"accelerator": "gpu"} if used else {}),
    }


def _agree(path: Path, settings: dict[str, Any]) -> None:
    before = torch.load(path, map_location="cpu", weights_only=True)["hyper_parameters"]["settings"]
    odd = [key for key in {**before, **settings} if before.get(key) != settings.get(key)]
    if odd:
        differences = ", ".join(
            f"{key}: {_shown(key, before)} there, {_shown(key, settings)} here" for key in odd
        )
        raise ValueError(
            f"{path} belongs to another training ({differences}): choose another folder, or delete the file "
            "to start again"
        )


def _shown(key: str, settings: dict[str, Any]) -> str:
    """A setting in words; the CPU and one process are not among the settings."""
    if key == "accelerator":
        return "a GPU" if settings.get(key) == "gpu" else "the CPU"
    return repr(settings.get(key))


def _digest(examples: Examples) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.dtype}{tuple(example.shape)}".encode())
        for rows in example.detach().split(BLOCK) if example.ndim else (example.detach(),):
            digest.update(rows.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _cast(how: "Descent", examples: Examples) -> Examples:
    """Detached examples in the precision of the training, so that no batch needs a conversion."""
    double = how.precision == "64-true"
    return tuple(
        each.detach().double() if double and each.is_floating_point() else each.detach() for each in examples
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
            # Jobs of SLURM train in the process that runs them.
            warnings.filterwarnings("ignore", message=r"The `srun` command is available")
            # Lightning's own use of torch's tree functions.
            warnings.filterwarnings("ignore", message=r".*LeafSpec.* is deprecated", category=FutureWarning)
            yield
    finally:
        for talker, level in zip(talkers, levels, strict=True):
            talker.setLevel(level)
