"""One job, alone or as part of a sweep: run folder, provenance record, and status around a command's work.

In a sweep, a failed job records the failure in its folder and the other jobs continue; otherwise its error is
passed on. The provenance record holds the command, versions, commit and machine, and nothing else of the
environment.
"""

import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import current_process
from pathlib import Path
from shlex import join
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from rehearsal_torch.cli.command_words import typed_as
from rehearsal_torch.cli.errors import (
    ELSEWHERE,
    UNWRITABLE,
    lies_in,
    obey_cluster,
    of_edited_file,
    writing_to,
)
from rehearsal_torch.cli.main import raised, recordable
from rehearsal_torch.cli.resume import HYDRA, agree, cleared
from rehearsal_torch.files.package_paths import commit
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import screen
from rehearsal_torch.run_folder import RunFolder, State
from rehearsal_torch.training.gradient_descent import turn
from rehearsal_torch.user_error import UserError, user_error_from
from rehearsal_torch.worker_processes import end_with

# The same of a folder that is resumed, where out= means nothing.
COPIED = "Change its permissions, or copy it to a folder that can be written to, and resume the copy"
PACKAGES = ("rehearsal-torch", "torch", "lightning", "hydra-core", "numpy", "scipy", "pandas")


def provenance(command: str, overrides: Sequence[str], seed: int) -> dict[str, Any]:
    """The content of `run.json` at the start of a run."""
    return {
        "command": join([*typed_as(command), *overrides]),
        "script": command,
        "overrides": list(overrides),
        "seed": seed,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "commit": commit(),
        "machine": {
            "system": platform.system(),
            "release": platform.release(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
        },
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return sys.modules[name].__version__ if name in sys.modules else None


Work = Callable[[DictConfig, RunFolder, bool], str]


def carry_out(script: str, work: Work, config: DictConfig) -> None:
    """Runs a command's work in its run folder; outside a sweep, an error is stored in `raised`. The work gets
    the configuration, the folder and whether it is part of a sweep, and returns a sentence on the result.
    """
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        if current_process().name != "MainProcess":
            end_with(os.getppid())
        obey_cluster()
        _carry_out(script, work, config, sweep=True)
        return
    raised.clear()
    try:
        _carry_out(script, work, config, sweep=False)
    except Exception as error:
        raised.append(error)


def _carry_out(script: str, work: Work, config: DictConfig, *, sweep: bool) -> None:
    hydra = HydraConfig.get()
    folder = RunFolder(_near(Path(hydra.runtime.output_dir)))
    overrides = recordable(hydra.overrides.task)
    apart = {"resume": None, "trusted": None, "parallel": "local", "dask": {"address": None}}
    content = plain(config) | apart | {"out": str(folder.path)}
    # Checked before anything in the folder is changed, and again once the folder is locked.
    agree(folder, content)
    there = (folder.path / "run.json").is_file()
    with writing_to(folder.path, COPIED if there else ELSEWHERE), folder.lock():
        agree(folder, content)
        cleared(folder)
        _record(script, work, config, folder, content, overrides, sweep=sweep)


def _record(
    script: str,
    work: Work,
    config: DictConfig,
    folder: RunFolder,
    content: Mapping[str, Any],
    overrides: list[str],
    *,
    sweep: bool,
) -> None:
    """Runs the work, after writing its provenance record and before writing its status."""
    began = time.perf_counter()
    before, written = folder.read_json("run.json"), False
    try:
        (folder.path / "status.json").unlink(missing_ok=True)
        spent = float(before.get("seconds", 0.0))
        choices = {
            key: value
            for key, value in HydraConfig.get().runtime.choices.items()
            if not key.startswith("hydra")
        }
        run = before or provenance(script, overrides, int(config.seed)) | {
            "choices": choices,
            "kind": None,
            "data_fingerprint": None,
            "seconds": 0.0,
        }
        # run.json identifies the folder as that of a run, and therefore comes first.
        folder.write_json("run.json", run)
        written = True
        folder.write_yaml("config.yaml", content)
        if not before:
            _write_hydra(folder, config)
        screen(config)
        if sweep:
            one_device(config)
        message = work(config, folder, sweep)
        seconds = time.perf_counter() - began
        if not folder.begun:
            raise _removed(folder)
        folder.write_json("run.json", folder.read_json("run.json") | {"seconds": round(spent + seconds, 3)})
        folder.close("ok", message, overrides, seconds)
    except BaseException as error:
        wrong = _as_user_error(error, folder, resumed=bool(before))
        if wrong is error and written and not folder.begun and isinstance(error, Exception):
            wrong = _removed(folder)
        state: State = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        # Where run.json found no space, a smaller status.json may find some: alone, it would make the folder
        # one that holds no run.
        if sweep or (folder.path / "run.json").is_file():
            # A full disk, or a read-only folder, must not hide the error.
            with suppress(OSError):
                folder.close(state, _sentence(wrong, folder), overrides, time.perf_counter() - began)
                if not isinstance(error, KeyboardInterrupt) and user_error_from(error) is None:
                    folder.write("error.txt", "".join(traceback.format_exception(error)))
        if not sweep or not isinstance(wrong, Exception):
            if wrong is error:
                raise
            raise wrong from error
        print(f"job in {folder.path} failed: {_sentence(wrong, folder)}", file=sys.stderr, flush=True)


def _write_hydra(folder: RunFolder, config: DictConfig) -> None:
    """Writes what Hydra writes with ``output_subdir=.hydra``. Hydra would write it before the folder is known
    to be free. Nothing reads it.
    """
    hydra = HydraConfig.get()
    nodes = {"config": config, "hydra": OmegaConf.create({"hydra": hydra}), "overrides": hydra.overrides.task}
    for name, node in nodes.items():
        folder.write(f"{HYDRA}/{name}.yaml", OmegaConf.to_yaml(node))


def one_device(config: DictConfig) -> None:
    """Gives a job of a sweep one device: GPUs in turn, where there are several."""
    devices = OmegaConf.select(config, "trainer.devices")
    if devices > 1 if isinstance(devices, int) else len(devices or ()) > 1:
        raise UserError(
            f"expected one device for each job of a sweep; got {devices}",
            "trainer.devices",
            "Leave it out: jobs run side by side with hydra/launcher=joblib, each with one",
        )
    if devices == 1:
        with open_dict(config):
            config.trainer.devices = turn(
                HydraConfig.get().job.num, str(config.trainer.get("accelerator", "cpu"))
            )


def _removed(folder: RunFolder) -> UserError:
    """What is said where run.json, which a run has from its beginning to its end, is no longer there."""
    return UserError(
        "the folder was removed, or emptied, while the run worked",
        str(folder.path),
        "Run the same command again, and leave the folder as it is until the run has ended",
    )


def _as_user_error(error: BaseException, folder: RunFolder, *, resumed: bool) -> BaseException:
    """The error as shown to the user.

    An error of a resumed run is most often caused by an edited file of its folder: what would otherwise count
    as a bug is then reported as a `UserError`, with its traceback in error.txt.
    """
    wrong = user_error_from(error)
    if wrong is not None:
        # The operating system does not always say where: the run's folder is what a run writes to.
        if isinstance(error, OSError) and error.errno in UNWRITABLE and lies_in(wrong.where, folder.path):
            return UserError(wrong.what, wrong.where, COPIED if resumed else ELSEWHERE)
        unnamed = isinstance(error, OSError) and not wrong.where
        return UserError(wrong.what, str(folder.path), wrong.remedy) if unnamed else wrong
    where = "error.txt there shows where it failed"
    remedy = f"Restore changed files from a copy, or start again with another out=; {where}"
    edited = of_edited_file(error, "the run cannot be resumed from", folder.path, remedy)
    return edited if resumed and edited is not None else error


def _sentence(error: BaseException, folder: RunFolder) -> str:
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted; continue with resume={folder.path}"
    if isinstance(error, UserError):
        return str(error)
    return beginning(f"{type(error).__name__}: {' '.join(str(error).split())}", 500)


def _near(path: Path) -> Path:
    """The path relative to the current folder, if it is inside it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
