"""One job: what Hydra calls, alone or many times in a sweep.

Around a command's own work stand its run folder, its record of where it comes from, and its status. In a sweep a job
that fails says so in its folder and lets the others go on; alone, its error is passed on.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from rehearsal_torch.commands.building import plain
from rehearsal_torch.commands.provenance import provenance
from rehearsal_torch.commands.taking_up import agree
from rehearsal_torch.commands.user_error import UserError
from rehearsal_torch.history import RunFolder

Work = Callable[[DictConfig, RunFolder, bool], str]


# What a job outside a sweep has raised. Hydra would print a line of its own about an error that passes through it.
raised: list[Exception] = []


def carry_out(script: str, work: Work, config: DictConfig) -> None:
    """Runs a command's work in its run folder; outside a sweep, an error is left in `raised`.

    Args:
        script: The command's name.
        work: What is done, given the configuration, the folder and whether it is part of a sweep; returns a sentence that says what came out.
        config: The job's configuration.

    Raises:
        UserError: in a sweep, if the folder holds something else.
    """
    if HydraConfig.get().mode == RunMode.MULTIRUN:
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
    overrides = [text for text in hydra.overrides.task if not text.startswith(("out=", "resume="))]
    began = time.perf_counter()
    content = plain(config) | {"out": str(folder.path), "resume": None}
    agree(folder, content)
    (folder.path / "status.json").unlink(missing_ok=True)
    try:
        before = folder.read_json("run.json")
        spent = float(before.get("seconds", 0.0))
        choices = {key: value for key, value in hydra.runtime.choices.items() if not key.startswith("hydra")}
        run = before or provenance(script, overrides, int(config.seed)) | {"choices": choices, "data_fingerprint": None, "seconds": 0.0}
        folder.write_yaml("config.yaml", content)
        folder.write_json("run.json", run)
        message = work(config, folder, sweep)
        seconds = time.perf_counter() - began
        folder.write_json("run.json", folder.read_json("run.json") | {"seconds": round(spent + seconds, 3)})
        folder.close("ok", message, overrides, seconds)
    except BaseException as error:
        folder.close("failed", _sentence(error, folder), overrides, time.perf_counter() - began)
        if not isinstance(error, UserError | KeyboardInterrupt):
            folder.write("error.txt", "".join(traceback.format_exception(error)))
        if not sweep or not isinstance(error, Exception):
            raise
        print(f"job in {folder.path} failed: {_sentence(error, folder)}", file=sys.stderr, flush=True)


def _sentence(error: BaseException, folder: RunFolder) -> str:
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted; go on with resume={folder.path}"
    if isinstance(error, UserError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def _near(path: Path) -> Path:
    """The path as seen from here, where it lies below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def statuses(sweep: Path, jobs: list[list[str]]) -> list[dict[str, Any]]:
    """What became of each job of a sweep; those that were never started are marked as skipped.

    Args:
        sweep: The sweep's folder, with one numbered folder a job.
        jobs: Each job's overrides.
    """
    found = []
    for number, overrides in enumerate(jobs):
        folder = RunFolder(sweep / str(number))
        kept = [text for text in overrides if not text.startswith(("out=", "resume="))]
        try:
            status = folder.read_json("status.json")
        except json.JSONDecodeError:
            status = {}
        if not status and folder.begun:
            status = {"state": "failed", "message": "ended without a word: killed, or out of memory"}
        elif not status:
            status = {"state": "skipped", "message": "never started"}
        if "overrides" not in status:
            folder.close(status["state"], status["message"], kept, 0.0)
        found.append({"job": number, "overrides": kept, "seconds": 0.0, **status, "folder": str(folder.path)})
    return found
