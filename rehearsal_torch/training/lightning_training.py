"""One training of a part with Lightning.

Builds the Lightning trainer that a `Descent` describes, resumes an unfinished training of the same data and
settings from its folder, and returns the part with its best weights, on its original device and in its
original precision. Several processes are those of Lightning's data parallelism; what they have learnt comes
back in the last state that the first one of them writes.

Source: Li et al. (2020), PyTorch Distributed: experiences on accelerating data parallel training.
"""

import copy
import hashlib
import logging
import math
import os
import re
import signal
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping
from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor
from torch.multiprocessing.spawn import ProcessException

from rehearsal_torch.data.trainable_part import Examples, Trained, in_words
from rehearsal_torch.progress import Progress
from rehearsal_torch.training.lightning_module import BLOCK, HELD_OUT, TrainingData, TrainingModule
from rehearsal_torch.worker_processes import threads

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger

    from rehearsal_torch.training.gradient_descent import Descent


class BestWeights(Callback):
    """Keeps the weights of the epoch with the lowest held-out loss. They are part of the callback's state,
    hence of ``last.ckpt``, so that a resumed training has them even if its folder has been moved.
    """

    def __init__(self) -> None:
        self.score, self.weights = math.inf, dict[str, Tensor]()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keeps the weights if they are the best so far."""
        if trainer.sanity_checking:
            return
        score = float(trainer.callback_metrics[HELD_OUT])
        if score < self.score:
            self.score = score
            self.weights = {name: value.detach().clone() for name, value in pl_module.state_dict().items()}

    def state_dict(self) -> dict[str, Any]:
        """The state written to ``last.ckpt``."""
        return {"score": self.score, "weights": self.weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state from ``last.ckpt``."""
        self.score, self.weights = float(state_dict["score"]), dict(state_dict["weights"])


class LastState(Checkpoint):
    """Writes ``last.ckpt`` into a folder at the end of every training epoch, after the losses and the other
    callbacks' states have been updated. Lightning's own checkpoint callback saves its last state only
    together with a best one, and loses both when the folder is moved.
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
    """Prevents a resumed training from continuing if early stopping had ended it, which Lightning forgets."""

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
        value = 0.0 if trainer.sanity_checking else float(trainer.callback_metrics[HELD_OUT])
        self._check(trainer, math.isfinite(value), f"{HELD_OUT} is {value}")

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Checks the weights."""
        finite = all(bool(torch.isfinite(weight).all()) for weight in pl_module.parameters())
        self._check(trainer, finite, "the weights are not finite")

    def _check(self, trainer: Trainer, finite: bool, what: str) -> None:
        if not finite:
            raise ValueError(
                f"expected finite losses; in epoch {trainer.current_epoch} {what}: lower learning_rate, set "
                "clip, or look for extreme rows in the data"
            )


class EpochCount(Callback):
    """Tells a line of progress which epoch has ended, and its losses."""

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


# The extras that install the libraries of loggers, and the word for a run's name where runs have names.
_EXTRAS = {"tensorboard": "tensorboard", "wandb": "loggers", "mlflow": "loggers"}
_NAMES = {"wandb": "name", "mlflow": "run_name"}
# Read by the libraries when they are imported: no reports about their use; files may be a store.
_ENVIRONMENT = {
    "WANDB_ERROR_REPORTING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}


def run(
    how: "Descent", part: Trained, examples: Examples, held_out: Examples | None, name: str
) -> list[tuple[int, str, float]]:
    """Trains one part in place; see `Descent.train`."""
    used = how.gpus()
    count = len(used) or (how.devices if isinstance(how.devices, int) else 1)
    # One for a loss that is not a mean over rows.
    world = count if part.uses_held_out else 1
    used = used[:world]
    homes = {key: (value.device, value.dtype) for key, value in _tensors(part)}
    settings = _settings(how, examples, held_out, world, used)
    folder = None if how.folder is None else how.folder / name
    module, best = TrainingModule(part.train(), **settings), BestWeights()
    begin = None if folder is None else folder / "last.ckpt"
    if begin is not None and begin.exists():
        _agree(begin, settings)
    else:
        begin = None if how.ckpt_path is None else _begin(how.ckpt_path, name, module)
    checks = None if held_out is None else _cast(how, held_out)
    data = TrainingData(_cast(how, examples), checks, how.batch_size, how.seed, how.least_batches)
    line = Progress(
        f"fitting {in_words(name)}",
        how.max_epochs,
        steps="epoch",
        at_most=held_out is not None and how.patience is not None,
        quiet=not how.progress,
    )
    with ExitStack() as afterwards, threads(how.threads), line:
        # The result of several processes comes back in the last state that the first one writes.
        kept_in = folder
        if folder is None and world > 1:
            kept_in = Path(afterwards.enter_context(tempfile.TemporaryDirectory(prefix="training-")))
        if used:
            afterwards.callback(torch.cuda.set_device, torch.cuda.current_device())
        callbacks = _callbacks(how, best, kept_in, held_out is not None)
        # Of several processes, this one only waits.
        callbacks += [EpochCount(line)] if world == 1 else []
        _fit(how, module, data, callbacks, folder, begin, used, world)
        if world > 1:
            assert kept_in is not None
            state = torch.load(kept_in / "last.ckpt", map_location="cpu", weights_only=True)
            module.load_state_dict(state["state_dict"])
            module.on_load_checkpoint(state)
            if held_out is not None:
                best.load_state_dict(state["callbacks"][best.state_key])
    if best.weights:
        module.load_state_dict(best.weights)
    part.zero_grad(set_to_none=True)
    for key, value in _tensors(part):
        device, dtype = homes[key]
        value.data = value.data.to(device, dtype)
    part.eval().finish()
    return module.readings


class _Processes(DDPStrategy):
    """Processes that Lightning starts for one training, by spawning: a forked process may deadlock in the
    threads of its parent. They talk over gloo on the CPU, and over NCCL with a GPU each, which `used` lists.
    """

    def __init__(self, used: Sequence[int], threads: int | None) -> None:
        super().__init__(
            cluster_environment=LightningEnvironment(),
            process_group_backend="nccl" if used else "gloo",
            gradient_as_bucket_view=True,
            start_method="spawn",
        )
        self.threads = threads

    def setup_environment(self) -> None:
        """Prepares one of the processes."""
        for name, level in _TALKERS.items():
            logging.getLogger(name).setLevel(level)
        _ignore_advice()
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        super().setup_environment()


def _fit(
    how: "Descent",
    module: TrainingModule,
    data: TrainingData,
    callbacks: list[Callback],
    folder: Path | None,
    begin: Path | None,
    used: list[int],
    world: int,
) -> None:
    """Trains a module, in `world` processes; on the GPUs `used`, if there are some, a process each."""
    with _quiet(), torch.random.fork_rng(devices=used[:1]), _logging(how, folder, world) as loggers:
        flags: dict[str, Any] = {
            "strategy": "auto" if world == 1 else _Processes(used, how.threads),
            "use_distributed_sampler": False,
            "gradient_clip_val": how.clip,
            "enable_checkpointing": any(isinstance(callback, LastState) for callback in callbacks),
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "num_sanity_val_steps": 0,
            "limit_val_batches": None if data.held_out is not None else 0,
            # Losses are logged per epoch; Lightning warns if this interval, which is unused then, is longer
            # than an epoch.
            "log_every_n_steps": 1,
        } | how.flags
        try:
            trainer = Trainer(
                max_epochs=how.max_epochs,
                accelerator="cuda" if used else "cpu",
                devices=used or world,
                precision=how.precision,
                logger=loggers,
                callbacks=callbacks,
                default_root_dir=folder,
                **flags,
            )
        except (MisconfigurationException, TypeError, ValueError) as error:
            raise ValueError(
                f"Lightning's Trainer refuses these settings ({' '.join(str(error).split())[:300]}): correct "
                f"{', '.join(how.flags) or 'the settings of the training'}"
            ) from error
        port = os.environ.get("MASTER_PORT")
        try:
            trainer.fit(module, datamodule=data, ckpt_path=begin, weights_only=True)
        except SystemExit as error:
            # Lightning exits with code 1 on an interrupt; the caller must see the interrupt.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise
        except ProcessException as error:
            reason = str(error).strip().splitlines()[-1]
            raise RuntimeError(
                f"one of the {world} processes of this training has ended ({reason[:300]}): choose "
                "trainer.devices=1, or start again"
            ) from error
        finally:
            launcher = trainer.strategy.launcher
            if launcher is not None:
                # This process waits for its children when it ends, and after an interruption they go on.
                launcher.kill(signal.SIGKILL)
                # The next training takes a free port of its own.
                if port is None:
                    os.environ.pop("MASTER_PORT", None)


@contextmanager
def _logging(how: "Descent", folder: Path | None, world: int) -> Iterator[list["Logger"]]:
    """The loggers of a training; those that have begun end with it, however it ends."""
    mode, begun = os.environ.get("WANDB_MODE"), list["Logger"]()
    try:
        for logger in () if folder is None else _loggers(how, folder, world):
            begun.append(logger)
        yield begun
    finally:
        try:
            for logger in begun:
                if isinstance(logger, WandbLogger) and world == 1:
                    # The next part's losses get a run of their own.
                    logger.experiment.finish()
        finally:
            # Lightning sets it for an offline run, and later ones of the same process would heed it.
            os.environ.pop("WANDB_MODE", None)
            if mode is not None:
                os.environ["WANDB_MODE"] = mode


def _loggers(how: "Descent", folder: Path, world: int) -> Iterator["Logger"]:
    """Makes loggers that write below a folder, each into one of its name."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name, make in how.loggers.items():
        # A folder that is resumed may have been written by somebody else.
        if not name.isidentifier():
            raise ValueError(
                f"expected the name of a logger, of letters, digits and underscores; got {name!r}"
            )
        own_folder = (folder / name).resolve()
        own_folder.mkdir(parents=True, exist_ok=True)
        named = {_NAMES[name]: folder.name} if name in _NAMES else {}
        if not getattr(make, "keywords", {}).get("tracking_uri", "elsewhere"):
            # Lightning would take the signs of the path for those of an address.
            named["tracking_uri"] = own_folder.as_uri()
        try:
            logger = make(save_dir=str(own_folder), **named)
            # Of several processes, the first one begins.
            _ = getattr(logger, "experiment", None) if world == 1 else None
        except ModuleNotFoundError as error:
            if name not in _EXTRAS:
                raise
            package = (error.name or name).partition(".")[0]
            needed = f", which {name} needs for these settings" if package != name else ""
            install = package if needed else f"'rehearsal-torch[{_EXTRAS[name]}]'"
            raise ModuleNotFoundError(
                f"logger.{name}: expected the package {package}{needed}; it is not installed: pip install "
                f"{install}, or choose logger=csv"
            ) from error
        except Exception as error:
            raise ValueError(
                f"logger.{name}: the library cannot begin ({' '.join(str(error).split())[:300]}): correct "
                "its settings, or choose logger=csv"
            ) from error
        yield logger


def _callbacks(how: "Descent", best: BestWeights, folder: Path | None, checked: bool) -> list[Callback]:
    callbacks: list[Callback] = [best, Ended(), Finite()] if checked else [Finite()]
    if checked and how.patience is not None:
        callbacks.append(
            EarlyStopping(
                HELD_OUT,
                patience=how.patience,
                # Where not every epoch is checked, after a check.
                check_on_train_epoch_end=not _RARELY & how.flags.keys(),
                log_rank_zero_only=True,
            )
        )
    if folder is not None:
        callbacks.append(LastState(folder))
    own = [copy.deepcopy(given) if isinstance(given, Callback) else given() for given in how.callbacks]
    for callback in own:
        if not isinstance(callback, Callback):
            raise ValueError(
                f"callbacks: expected callbacks of Lightning, or functions that make them; got a "
                f"{type(callback).__name__}"
            )
    return callbacks + own


def _begin(path: Path, name: str, module: TrainingModule) -> Path:
    """The file of Lightning's with which the training of a part begins, once it has been read."""
    if path.is_dir():
        places = [path / name / "last.ckpt", path / "training" / name / "last.ckpt"]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            parts = sorted(each.parent.name for each in path.glob("**/last.ckpt"))
            what = f"trainings of {', '.join(parts)}" if parts else "no training"
            remedy = "rt.load loads fitted models" if (path / "weights.safetensors").exists() else ""
            raise ValueError(
                f"ckpt_path: expected the folder of a run with training/{name}/last.ckpt, or a file of "
                f"Lightning's; {path} holds {what}" + (f": {remedy}" if remedy else "")
            )
        path = file
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        weights = {key: tuple(value.shape) for key, value in state["state_dict"].items()}
        _ = state["optimizer_states"], state["loops"]
    except OSError:
        raise
    except Exception as error:
        raise ValueError(
            f"ckpt_path: expected a file of Lightning's, of weights, optimiser and plain values alone; "
            f"{path} cannot be read as one ({type(error).__name__}): save it by "
            "Trainer.save_checkpoint, from a module whose hyper-parameters are plain values"
        ) from error
    wanted = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    if odd := [key for key in {**wanted, **weights} if weights.get(key) != wanted.get(key)]:
        raise ValueError(
            f"ckpt_path: {path} holds the weights of another model ("
            + ", ".join(
                f"{key}: {weights.get(key, 'none')} there, {wanted.get(key, 'none')} here" for key in odd[:3]
            )
            + "): choose another file"
        )
    return path


def _settings(
    how: "Descent", examples: Examples, held_out: Examples | None, world: int, used: Sequence[int]
) -> dict[str, Any]:
    """The settings that determine the result, as plain values: Lightning's checkpoints must be readable
    without unpickling.
    """
    decisive = ("batch_size", "learning_rate", "patience", "precision", "seed", "clip")
    return {
        **{name: getattr(how, name) for name in decisive},
        **({"least_batches": how.least_batches} if how.least_batches > 1 else {}),
        "examples": _digest(examples),
        "held_out": _digest(() if held_out is None else held_out),
        **({"devices": world} if world > 1 else {}),
        # A GPU sums in another order. Its number does not matter.
        **({"accelerator": "gpu"} if used else {}),
        **{f"flag {name}": repr(value) for name, value in how.flags.items() if not _FREE.fullmatch(name)},
    }


# Flags that decide how often held-out rows are looked at.
_RARELY = {"check_val_every_n_epoch", "val_check_interval"}
# Flags that decide how long a training lasts, or what it shows, and not what it finds.
_FREE = re.compile(r"enable_.*|max_.*|min_.*|log_every_n_steps|profiler")


def _agree(path: Path, settings: dict[str, Any]) -> None:
    before = torch.load(path, map_location="cpu", weights_only=True)["hyper_parameters"]
    if odd := [key for key in {**before, **settings} if before.get(key) != settings.get(key)]:
        raise ValueError(
            f"{path} belongs to another training ("
            + ", ".join(f"{key}: {_shown(key, before)} there, {_shown(key, settings)} here" for key in odd)
            + "): choose another folder, or delete the file to start again"
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
        example.detach().double() if double and example.is_floating_point() else example.detach()
        for example in examples
    )


def _tensors(part: Trained) -> list[tuple[str, Tensor]]:
    return [*part.named_parameters(), *part.named_buffers()]


# Lightning's advice on devices and services; that an experiment of MLflow is new is a warning to it.
_TALKERS = {
    "lightning.pytorch": logging.WARNING,
    "lightning.fabric": logging.WARNING,
    "lightning.pytorch.loggers": logging.ERROR,
}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Lightning's advice."""
    talkers = [logging.getLogger(name) for name in _TALKERS]
    levels = [talker.level for talker in talkers]
    for talker, level in zip(talkers, _TALKERS.values(), strict=True):
        talker.setLevel(level)
    try:
        with warnings.catch_warnings():
            _ignore_advice()
            yield
    finally:
        for talker, level in zip(talkers, levels, strict=True):
            talker.setLevel(level)


def _ignore_advice() -> None:
    # Not using an available GPU is intended.
    warnings.filterwarnings("ignore", message=r"GPU available but not used")
    # Jobs of SLURM train in the process that runs them.
    warnings.filterwarnings("ignore", message=r"The `srun` command is available")
    # Lightning's own use of torch's tree functions.
    warnings.filterwarnings("ignore", message=r".*LeafSpec.* is deprecated", category=FutureWarning)
