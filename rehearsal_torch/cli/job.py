"""One job, alone or in a sweep: the run folder, provenance record and status around a command's work.

In a sweep, a failed job records the failure in its folder and the other jobs continue; otherwise its error is
raised. The provenance record holds command, versions, commit and machine, and nothing else of the system.
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
    Stopped,
    lies_in,
    obey_cluster,
    of_edited_file,
    within,
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

# The remedy for a resumed folder that cannot be written to.
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
    """Runs a command's work in its run folder; outside a sweep, an error is stored in `raised`. The work maps
    configuration, folder and whether it is part of a sweep to a sentence on the result.
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
    path, current = Path(HydraConfig.get().runtime.output_dir), Path.cwd()
    folder = RunFolder(path.relative_to(current) if path.is_relative_to(current) else path)
    unset = dict.fromkeys(("resume", "minutes", "trusted"))
    neutral = {**unset, "parallel": "local", "dask": {"address": None}}
    content = plain(config) | neutral | {"out": str(folder.path)}
    # Before anything in the folder is changed, and again once it is locked.
    agree(folder, content)
    resumed = (folder.path / "run.json").is_file()
    remedy = COPIED if resumed else ELSEWHERE
    with within(config.get("minutes")), writing_to(folder.path, remedy), folder.lock():
        agree(folder, content)
        cleared(folder)
        _record(script, work, config, folder, content, sweep)


def _record(
    script: str, work: Work, config: DictConfig, folder: RunFolder, content: Mapping[str, Any], sweep: bool
) -> None:
    """Runs the work, after writing its provenance record and before writing its status."""
    hydra, began = HydraConfig.get(), time.perf_counter()
    overrides = recordable(hydra.overrides.task)
    earlier, recorded = folder.read_json("run.json"), False
    try:
        (folder.path / "status.json").unlink(missing_ok=True)
        offset = float(earlier.get("seconds", 0.0))
        groups = hydra.runtime.choices.items()
        choices = {key: option for key, option in groups if not key.startswith("hydra")}
        initial = {"choices": choices, "kind": None, "data_fingerprint": None, "seconds": 0.0}
        run = earlier or provenance(script, overrides, int(config.seed)) | initial
        # run.json identifies the folder as that of a run, and therefore comes first.
        folder.write_json("run.json", run)
        recorded = True
        folder.write_yaml("config.yaml", content)
        if not earlier:
            _write_hydra(folder, config)
        screen(config)
        if sweep:
            one_device(config)
        message = work(config, folder, sweep)
        seconds = time.perf_counter() - began
        if not folder.begun:
            raise _removed_folder(folder)
        folder.write_json("run.json", folder.read_json("run.json") | {"seconds": round(offset + seconds, 3)})
        folder.close("ok", message, overrides, seconds)
    except BaseException as error:
        fault = _as_user_error(error, folder, resumed=bool(earlier))
        if fault is error and recorded and not folder.begun and isinstance(error, Exception):
            fault = _removed_folder(folder)
        state: State = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        # On a full disk, status.json may fit where run.json did not, and would not make a run alone.
        if sweep or (folder.path / "run.json").is_file():
            # A full disk, or a read-only folder, must not hide the error.
            with suppress(OSError):
                folder.close(state, _message(fault, folder), overrides, time.perf_counter() - began)
                if not isinstance(error, KeyboardInterrupt) and user_error_from(error) is None:
                    folder.write("error.txt", "".join(traceback.format_exception(error)))
        if not sweep or not isinstance(fault, Exception):
            if fault is error:
                raise
            raise fault from error
        print(f"job in {folder.path} failed: {_message(fault, folder)}", file=sys.stderr, flush=True)


def _write_hydra(folder: RunFolder, config: DictConfig) -> None:
    """Writes Hydra's record, as with ``output_subdir=.hydra``, once the folder is known to be free."""
    hydra = HydraConfig.get()
    nodes = {"config": config, "hydra": OmegaConf.create({"hydra": hydra}), "overrides": hydra.overrides.task}
    for name, node in nodes.items():
        folder.write(f"{HYDRA}/{name}.yaml", OmegaConf.to_yaml(node))


def one_device(config: DictConfig) -> None:
    """Gives a job of a sweep one device; several GPUs take turns."""
    devices = OmegaConf.select(config, "trainer.devices")
    if devices > 1 if isinstance(devices, int) else len(devices or ()) > 1:
        fault = f"expected one device for each job of a sweep; got {devices}"
        remedy = "Leave it out: jobs run side by side with hydra/launcher=joblib, each with one"
        raise UserError(fault, "trainer.devices", remedy)
    if devices == 1:
        with open_dict(config):
            accelerator = str(config.trainer.get("accelerator", "cpu"))
            config.trainer.devices = turn(HydraConfig.get().job.num, accelerator)


def _removed_folder(folder: RunFolder) -> UserError:
    """The error if run.json, which a run has from its beginning to its end, is missing."""
    fault = "the folder was removed, or emptied, while the run worked"
    remedy = "Run the same command again, and leave the folder as it is until the run has ended"
    return UserError(fault, str(folder.path), remedy)


def _as_user_error(error: BaseException, folder: RunFolder, *, resumed: bool) -> BaseException:
    """The error as shown to the user; a bug in a resumed run is most often an edited file of its folder."""
    fault = user_error_from(error)
    if fault is not None:
        # The operating system does not always name the file; a run writes to its folder.
        if isinstance(error, OSError) and error.errno in UNWRITABLE and lies_in(fault.where, folder.path):
            return UserError(fault.what, fault.where, COPIED if resumed else ELSEWHERE)
        unnamed = isinstance(error, OSError) and not fault.where
        return UserError(fault.what, str(folder.path), fault.remedy) if unnamed else fault
    remedy = (
        "Restore changed files from a copy, or start again with another out=; error.txt there shows where it "
        "failed"
    )
    edited = of_edited_file(error, "the run cannot be resumed from", folder.path, remedy)
    return edited if resumed and edited is not None else error


def _message(error: BaseException, folder: RunFolder) -> str:
    if isinstance(error, KeyboardInterrupt):
        cause = f" by {error}" if isinstance(error, Stopped) else ""
        return f"interrupted{cause}; continue with resume={folder.path}"
    if isinstance(error, UserError):
        return str(error)
    return beginning(f"{type(error).__name__}: {' '.join(str(error).split())}", 500)
