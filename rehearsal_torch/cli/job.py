"""One job, alone or as part of a sweep: run folder, provenance record, and status around a command's work.

In a sweep, a failed job records the failure in its folder and the other jobs continue; otherwise its error is
passed on. The provenance record holds the command, versions, commit and machine, and nothing else of the
environment.
"""

import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import current_process
from pathlib import Path
from shlex import join
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.build import plain, screen
from rehearsal_torch.cli.errors import UNWRITABLE, lies_in, user_error_from, writing_to
from rehearsal_torch.cli.installation import checkout
from rehearsal_torch.cli.resume import HYDRA, agree, cleared
from rehearsal_torch.cli.signals import obey_cluster
from rehearsal_torch.cli.spelling import typed_as
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.lock import holder
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.run_folder import RunFolder, State
from rehearsal_torch.user_error import UserError
from rehearsal_torch.workers import end_with

# Committed results, relative to the checkout: data that is written, not code that writes it.
RESULTS = Path("docs/results")
# What to do where the folder of a run cannot be written to.
ELSEWHERE = "Choose a folder that can be written to by out=FOLDER"
# The same of a folder that is resumed, where out= means nothing.
COPIED = "Change its permissions, or copy it to a folder that can be written to, and resume the copy"
# Overrides that belong to one command line, not to the run.
APART = ("trusted=", "parallel=", "dask.")
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


def commit() -> str | None:
    """The commit of this working copy, with "+changes" if tracked files other than results differ; None if
    there is none.
    """
    root = checkout()
    if root is None or not (root / ".git").exists():
        return None
    found = _git(root, "rev-parse", "HEAD")
    if found is None:
        return None
    return found + ("+changes" if changed_files(root, RESULTS) else "")


def changed_files(root: Path, besides: Path) -> list[str]:
    """The tracked files of a working copy that differ from its commit, except those in a folder.

    Args:
        besides: The excluded folder, relative to it.
    """
    asked = ("status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){besides}")
    return [line[3:] for line in (_git(root, *asked, strip=False) or "").splitlines()]


def _git(root: Path, *arguments: str, strip: bool = True) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0:
        return None
    return answer.stdout.strip() if strip else answer.stdout


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return sys.modules[name].__version__ if name in sys.modules else None


Work = Callable[[DictConfig, RunFolder, bool], str]


# The errors raised by a job outside a sweep. Hydra would print its own line about an error that passes
# through it.
raised: list[Exception] = []


def carry_out(script: str, work: Work, config: DictConfig) -> None:
    """Runs a command's work in its run folder; outside a sweep, an error is stored in `raised`.

    Args:
        work: The work, a function of the configuration, the folder and whether the job is part of a sweep; it
            returns a one-sentence summary of the result.

    Raises:
        UserError: in a sweep, if the folder holds something else.
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
    if resumed and isinstance(error, LookupError | TypeError | AttributeError | ValueError):
        text = beginning(" ".join(str(error).split()), 200)
        what = f"the run cannot be resumed from the content of the folder ({type(error).__name__}: {text})"
        remedy = (
            "Restore changed files from a copy, or start again with another out=; error.txt there shows "
            "where it failed"
        )
        return UserError(what, str(folder.path), remedy)
    return error


def recordable(overrides: Iterable[str]) -> list[str]:
    """Overrides without those for the run's location, for trust and for a cluster, which belong to one
    command line, not to the run.
    """
    return [text for text in overrides if not text.lstrip("+").startswith(("out=", "resume=", *APART))]


def _sentence(error: BaseException, folder: RunFolder) -> str:
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted; continue with resume={folder.path}"
    if isinstance(error, UserError):
        return str(error)
    return beginning(f"{type(error).__name__}: {' '.join(str(error).split())}", 500)


def _near(path: Path) -> Path:
    """The path relative to the current folder, if it is inside it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def statuses(sweep: Path, jobs: list[list[str]]) -> list[dict[str, Any]]:
    """The status of each job of a sweep; those that were never started are marked as skipped. Where another
    process works in a job's folder, as a job of a cluster may, nothing is written to it.

    Args:
        sweep: The sweep's folder, with one numbered folder per job.
    """
    found = []
    for number, overrides in enumerate(jobs):
        folder = RunFolder(sweep / str(number))
        kept = recordable(overrides)
        try:
            status = folder.read_json("status.json", ("state", "message"))
        except PlainFileError:
            status = {}
        if not status and (held := holder(folder.path)) is not None:
            status = {"state": "running", "message": f"in use {held}", "overrides": kept}
        elif not status and folder.begun:
            status = {"state": "failed", "message": "ended without a status: killed, or out of memory"}
        elif not status:
            status = {"state": "skipped", "message": "never started"}
        if "overrides" not in status:
            folder.close(status["state"], status["message"], kept, 0.0)
        found.append({"job": number, "overrides": kept, "seconds": 0.0, **status, "folder": str(folder.path)})
    return found
