"""Training loop of one part with Lightning: checkpoints, resumption, early stopping, data parallelism.

Builds the Lightning trainer that a `Descent` describes, resumes an unfinished training of the same data and
settings from its folder, and returns the part with its best weights, on its original device and in its
original precision. Several processes are those of Lightning's data parallelism; their weights come back in
the last state that the first one of them writes. Used by `Descent.train`.

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
    """Keeps the weights of the epoch with the lowest held-out loss, in ``last.ckpt``, for resumption."""

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
    """Writes ``last.ckpt`` at the end of every training epoch, after the other callbacks' states have been
    updated. Lightning's own checkpoint callback saves its last state only together with a best one, and loses
    both when the folder is moved.
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
    """Stops a resumed training that early stopping had ended, which Lightning forgets."""

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

    def _check(self, trainer: Trainer, finite: bool, problem: str) -> None:
        if not finite:
            raise ValueError(
                f"expected finite losses; in epoch {trainer.current_epoch} {problem}: lower learning_rate, "
                "set clip, or look for extreme rows in the data"
            )


class EpochCount(Callback):
    """Updates a line of progress with the epoch and its losses."""

    def __init__(self, line: Progress) -> None:
        self.line = line

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Counts the epochs of a resumed training as done."""
        self.line.begin(trainer.current_epoch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Shows the epoch's held-out loss, or without one the previous epoch's training loss."""
        assert isinstance(pl_module, TrainingModule)
        _, name, value = pl_module.readings[-1] if pl_module.readings else (0, "", 0.0)
        note = f"{name.replace('_', ' ').replace('held out', 'held-out')} {value:.4f}" if name else ""
        self.line.at(trainer.current_epoch + 1, note)


# The extras that install the libraries of loggers, and their arguments for the name of a run.
_EXTRAS = {"tensorboard": "tensorboard", "wandb": "loggers", "mlflow": "loggers"}
_RUN_NAME_ARGUMENTS = {"wandb": "name", "mlflow": "run_name"}
# Read by the libraries on import: no telemetry, and a folder of files as MLflow's store.
_ENVIRONMENT = {
    "WANDB_ERROR_REPORTING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}


def run(
    how: "Descent", part: Trained, examples: Examples, held_out: Examples | None, name: str
) -> list[tuple[int, str, float]]:
    """Trains one part in place; see `Descent.train`."""
    gpus = how.gpus()
    devices = len(gpus) or (how.devices if isinstance(how.devices, int) else 1)
    # A loss that is not a mean over rows cannot be shared.
    processes = devices if part.uses_held_out else 1
    gpus = gpus[:processes]
    placements = {key: (value.device, value.dtype) for key, value in _tensors(part)}
    settings = _settings(how, examples, held_out, processes, gpus)
    folder = None if how.folder is None else how.folder / name
    module, best = TrainingModule(part.train(), **settings), BestWeights()
    checkpoint = None if folder is None else folder / "last.ckpt"
    if checkpoint is not None and checkpoint.exists():
        _check_same_training(checkpoint, settings)
    else:
        checkpoint = None if how.ckpt_path is None else _starting_checkpoint(how.ckpt_path, name, module)
    validation = None if held_out is None else _cast(how, held_out)
    data = TrainingData(_cast(how, examples), validation, how.batch_size, how.seed, how.least_batches)
    line = Progress(
        f"fitting {in_words(name)}",
        how.max_epochs,
        steps="epoch",
        at_most=held_out is not None and how.patience is not None,
        quiet=not how.progress,
    )
    with ExitStack() as stack, threads(how.threads), line:
        state_folder = folder
        if folder is None and processes > 1:
            state_folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="training-")))
        if gpus:
            stack.callback(torch.cuda.set_device, torch.cuda.current_device())
        callbacks = _callbacks(how, best, state_folder, held_out is not None)
        # Of several processes, this one only waits.
        callbacks += [EpochCount(line)] if processes == 1 else []
        _fit(how, module, data, callbacks, folder, checkpoint, gpus, processes)
        if processes > 1:
            assert state_folder is not None
            state = torch.load(state_folder / "last.ckpt", map_location="cpu", weights_only=True)
            module.load_state_dict(state["state_dict"])
            module.on_load_checkpoint(state)
            if held_out is not None:
                best.load_state_dict(state["callbacks"][best.state_key])
    if best.weights:
        module.load_state_dict(best.weights)
    part.zero_grad(set_to_none=True)
    for key, value in _tensors(part):
        device, dtype = placements[key]
        value.data = value.data.to(device, dtype)
    part.eval().finish()
    return module.readings


class _Processes(DDPStrategy):
    """Lightning's processes for one training: spawned, as a fork may deadlock in its parent's threads."""

    def __init__(self, gpus: Sequence[int], threads: int | None) -> None:
        super().__init__(
            cluster_environment=LightningEnvironment(),
            process_group_backend="nccl" if gpus else "gloo",
            gradient_as_bucket_view=True,
            start_method="spawn",
        )
        self.threads = threads

    def setup_environment(self) -> None:
        """Prepares one of the processes."""
        for name, level in _LOG_LEVELS.items():
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
    checkpoint: Path | None,
    gpus: list[int],
    processes: int,
) -> None:
    """Trains a module in one process per GPU, or in several on the CPU."""
    with _quiet(), torch.random.fork_rng(devices=gpus[:1]), _open_loggers(how, folder, processes) as loggers:
        flags: dict[str, Any] = {
            "strategy": "auto" if processes == 1 else _Processes(gpus, how.threads),
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
                accelerator="cuda" if gpus else "cpu",
                devices=gpus or processes,
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
            trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=True)
        except SystemExit as error:
            # Lightning exits with code 1 on an interrupt; the caller must see the interrupt.
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise
        except ProcessException as error:
            reason = str(error).strip().splitlines()[-1]
            raise RuntimeError(
                f"one of the {processes} processes of this training has ended ({reason[:300]}): choose "
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
def _open_loggers(how: "Descent", folder: Path | None, processes: int) -> Iterator[list["Logger"]]:
    """The loggers of a training, which are closed with it, however it ends."""
    wandb_mode, loggers = os.environ.get("WANDB_MODE"), list["Logger"]()
    try:
        for logger in () if folder is None else _loggers(how, folder, processes):
            loggers.append(logger)
        yield loggers
    finally:
        try:
            for logger in loggers:
                if isinstance(logger, WandbLogger) and processes == 1:
                    # The next part's losses get a run of their own.
                    logger.experiment.finish()
        finally:
            # Lightning sets it for an offline run, and later ones of the same process would heed it.
            os.environ.pop("WANDB_MODE", None)
            if wandb_mode is not None:
                os.environ["WANDB_MODE"] = wandb_mode


def _loggers(how: "Descent", folder: Path, processes: int) -> Iterator["Logger"]:
    """Builds loggers, each of which writes into a subfolder of its name."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name, factory in how.loggers.items():
        # A folder that is resumed may have been written by somebody else.
        if not name.isidentifier():
            raise ValueError(
                f"expected the name of a logger, of letters, digits and underscores; got {name!r}"
            )
        subfolder = (folder / name).resolve()
        subfolder.mkdir(parents=True, exist_ok=True)
        arguments = {_RUN_NAME_ARGUMENTS[name]: folder.name} if name in _RUN_NAME_ARGUMENTS else {}
        if not getattr(factory, "keywords", {}).get("tracking_uri", "elsewhere"):
            # Lightning would take the signs of the path for those of an address.
            arguments["tracking_uri"] = subfolder.as_uri()
        try:
            logger = factory(save_dir=str(subfolder), **arguments)
            # Of several processes, the first one opens it.
            _ = getattr(logger, "experiment", None) if processes == 1 else None
        except ModuleNotFoundError as error:
            if name not in _EXTRAS:
                raise
            module = error.name or name
            package = module.partition(".")[0]
            dependency = f", which {name} needs for these settings" if package != name else ""
            requirement = package if dependency else f"'rehearsal-torch[{_EXTRAS[name]}]'"
            raise ModuleNotFoundError(
                f"logger.{name}: expected the package {package}{dependency}; it is not installed: pip "
                f"install {requirement}, or choose logger=csv"
            ) from error
        except Exception as error:
            raise ValueError(
                f"logger.{name}: the library cannot begin ({' '.join(str(error).split())[:300]}): correct "
                "its settings, or choose logger=csv"
            ) from error
        yield logger


def _callbacks(how: "Descent", best: BestWeights, folder: Path | None, validated: bool) -> list[Callback]:
    callbacks: list[Callback] = [best, Ended(), Finite()] if validated else [Finite()]
    if validated and how.patience is not None:
        callbacks.append(
            EarlyStopping(
                HELD_OUT,
                patience=how.patience,
                check_on_train_epoch_end=not _CHECK_INTERVALS & how.flags.keys(),
                log_rank_zero_only=True,
            )
        )
    if folder is not None:
        callbacks.append(LastState(folder))
    further = [copy.deepcopy(item) if isinstance(item, Callback) else item() for item in how.callbacks]
    for callback in further:
        if not isinstance(callback, Callback):
            raise ValueError(
                f"callbacks: expected callbacks of Lightning, or functions that make them; got a "
                f"{type(callback).__name__}"
            )
    return callbacks + further


def _starting_checkpoint(path: Path, name: str, module: TrainingModule) -> Path:
    """The checkpoint from which a part's training starts, validated."""
    if path.is_dir():
        candidates = [path / name / "last.ckpt", path / "training" / name / "last.ckpt"]
        file = next((candidate for candidate in candidates if candidate.is_file()), None)
        if file is None:
            parts = sorted(checkpoint.parent.name for checkpoint in path.glob("**/last.ckpt"))
            content = f"trainings of {', '.join(parts)}" if parts else "no training"
            remedy = "rt.load loads fitted models" if (path / "weights.safetensors").exists() else ""
            raise ValueError(
                f"ckpt_path: expected the folder of a run with training/{name}/last.ckpt, or a file of "
                f"Lightning's; {path} holds {content}" + (f": {remedy}" if remedy else "")
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
    expected = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    if differing := [key for key in {**expected, **weights} if weights.get(key) != expected.get(key)]:
        raise ValueError(
            f"ckpt_path: {path} holds the weights of another model ("
            + ", ".join(
                f"{key}: {weights.get(key, 'none')} there, {expected.get(key, 'none')} here"
                for key in differing[:3]
            )
            + "): choose another file"
        )
    return path


def _settings(
    how: "Descent", examples: Examples, held_out: Examples | None, processes: int, gpus: Sequence[int]
) -> dict[str, Any]:
    """The settings that determine the result, as plain values, which checkpoints hold without pickle."""
    names = ("batch_size", "learning_rate", "patience", "precision", "seed", "clip")
    return {
        **{name: getattr(how, name) for name in names},
        **({"least_batches": how.least_batches} if how.least_batches > 1 else {}),
        "examples": _digest(examples),
        "held_out": _digest(() if held_out is None else held_out),
        **({"devices": processes} if processes > 1 else {}),
        # A GPU sums in another order; which GPU does not matter.
        **({"accelerator": "gpu"} if gpus else {}),
        **{f"flag {name}": repr(value) for name, value in how.flags.items() if not _FREE.fullmatch(name)},
    }


# Flags by which not every epoch ends with a check of held-out rows.
_CHECK_INTERVALS = {"check_val_every_n_epoch", "val_check_interval"}
# Flags that a resumed training may change: duration and display, which do not change an epoch.
_FREE = re.compile(r"enable_.*|max_.*|min_.*|log_every_n_steps|profiler")


def _check_same_training(path: Path, settings: dict[str, Any]) -> None:
    stored = torch.load(path, map_location="cpu", weights_only=True)["hyper_parameters"]
    if differing := [key for key in {**stored, **settings} if stored.get(key) != settings.get(key)]:
        raise ValueError(
            f"{path} belongs to another training ("
            + ", ".join(
                f"{key}: {_text(key, stored)} there, {_text(key, settings)} here" for key in differing
            )
            + "): choose another folder, or delete the file to start again"
        )


def _text(key: str, settings: dict[str, Any]) -> str:
    """A setting in words; that of a training on the CPU has no accelerator."""
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
    """Detached examples in the precision of the training, converted once."""
    double = how.precision == "64-true"
    return tuple(
        example.detach().double() if double and example.is_floating_point() else example.detach()
        for example in examples
    )


def _tensors(part: Trained) -> list[tuple[str, Tensor]]:
    return [*part.named_parameters(), *part.named_buffers()]


# Hides Lightning's advice on devices and services, and its warning that an experiment of MLflow is new.
_LOG_LEVELS = {
    "lightning.pytorch": logging.WARNING,
    "lightning.fabric": logging.WARNING,
    "lightning.pytorch.loggers": logging.ERROR,
}


@contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _LOG_LEVELS]
    levels = [logger.level for logger in loggers]
    for logger, level in zip(loggers, _LOG_LEVELS.values(), strict=True):
        logger.setLevel(level)
    try:
        with warnings.catch_warnings():
            _ignore_advice()
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _ignore_advice() -> None:
    # Not using an available GPU is intended.
    warnings.filterwarnings("ignore", message=r"GPU available but not used")
    # Jobs of SLURM train in the process that runs them.
    warnings.filterwarnings("ignore", message=r"The `srun` command is available")
    # Lightning's own use of torch's tree functions.
    warnings.filterwarnings("ignore", message=r".*LeafSpec.* is deprecated", category=FutureWarning)
