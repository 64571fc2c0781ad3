"""The commands that Hydra runs (train, decide, cross_validate): from arguments to jobs and sweeps.

All arguments are checked first, without importing torch, so that errors in them are reported at once; the
module of the task (`cli.verbs`) is imported afterwards. Then the run folder is determined, and Hydra runs the
job or the sweep: many jobs in one folder, which records its sweep. A sweep ends with a table of its jobs,
including failed ones. Exit codes are those of `console_command`.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from shlex import join

import hydra
from hydra._internal.utils import get_args_parser
from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.command_words import quoted, spoken, typed_as, with_asked
from rehearsal_torch.cli.configuration_keys import check
from rehearsal_torch.cli.errors import ELSEWHERE, exit_code, writing_to
from rehearsal_torch.cli.overrides import composed, deferred, read_override
from rehearsal_torch.cli.resume import SWEEP, discard, recorded
from rehearsal_torch.files.atomic_write import make_folder
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.methods.hydra_config import CONF, named_in, trusted_in, trusted_names
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, user_error_from

# Overrides that belong to one command line, not to the run.
APART = ("trusted=", "parallel=", "dask.")
# The errors raised by a job outside a sweep: Hydra would print its own line about one that it passes on.
raised: list[Exception] = []


def train(config: DictConfig) -> None:
    """One training in its run folder."""
    _carry_out("train", config)


def decide(config: DictConfig) -> None:
    """The decisions for one cohort, or one shard of it, in its run folder."""
    _carry_out("decide", config)


def cross_validate(config: DictConfig) -> None:
    """All folds of one surrogate in its run folder."""
    _carry_out("cross_validate", config)


def _carry_out(script: str, config: DictConfig) -> None:
    # Imports leave no garbage; looking for some takes a tenth of the loading, and of the fit.
    gc.disable()
    try:
        work = import_module(f"rehearsal_torch.cli.verbs.{script}").work
        carry_out = import_module("rehearsal_torch.cli.job").carry_out
        gc.freeze()
    finally:
        gc.enable()
    carry_out(script, work, config)


def main(task: Callable[[DictConfig], None], typed: Sequence[str]) -> int:
    """Runs the command whose name is that of `task`, the function that Hydra calls for each job."""
    folders: list[Path] = []
    return exit_code(
        lambda: _run(task, list(typed), folders.append), lambda: interrupted(task.__name__, typed, folders)
    )


def interrupted(script: str, typed: Sequence[str], folders: Sequence[Path]) -> str:
    """The message after an interruption, with the command that continues."""
    if not folders or not any((folders[0] / name).is_file() for name in ("run.json", SWEEP)):
        return "Interrupted; run the same command again."
    # Overrides that belong to a command line, not to the run, and Hydra's own.
    lasting = [text for text in typed if text.startswith(APART) or of_hydra(text)]
    extra = get_args_parser().parse_args(list(typed)).config_dir
    command = [*typed_as(script), *_flags(extra), f"resume={folders[0]}", *lasting]
    return f"Interrupted; to continue, type {join(command)}"


def _flags(extra: str | None) -> list[str]:
    return ["--config-dir", extra] if extra else []


def _run(task: Callable[[DictConfig], None], arguments: list[str], notify: Callable[[Path], None]) -> int:
    parsed = get_args_parser().parse_args(arguments)
    script, typed, extra = task.__name__, list(parsed.overrides), parsed.config_dir
    if parsed.help or parsed.hydra_help or parsed.cfg or parsed.info is not None or parsed.shell_completion:
        if not (parsed.hydra_help or parsed.shell_completion):
            # Hydra would end with a traceback.
            if parsed.multirun:
                raise UserError("a sweep has no single configuration to show", "--multirun", "Leave it out")
            composed(typed, False, extra, complete=False)
        _hand_over(task, arguments)
        return 0
    resume = [text.partition("=")[2].strip("'\"") for text in typed if text.startswith("resume=")]
    resume = [folder for folder in resume if folder != "null"]
    multirun, trust = bool(parsed.multirun), list[str]()
    if resume:
        if any(text.startswith("out=") for text in typed):
            raise UserError("resume= names the folder already", "out", "Leave out= out")
        others = [text for text in typed if not text.startswith(("resume=", "trusted="))]
        trust = [f"trusted={_trusted_list(typed, extra)}"]
        typed, multirun = recorded(resume[0], others, script)
    else:
        typed = with_asked(typed)
    config, jobs = composed([*typed, *trust], multirun, extra)
    trusted = trusted_in(config)
    check(config, script, jobs, typed)
    out_option = resume[0] if resume else config.out
    out = _new_folder(str(config.name)) if out_option is None else Path(str(out_option))
    notify(out)
    lasting = [text for text in typed if not text.startswith("out=")]
    final = [*trust, f"out={quoted(str(out))}"]
    if not multirun:
        # A path that is a file, or inside one, is reported when the job checks it.
        with suppress(FileExistsError, NotADirectoryError):
            _make(out)
        _hand_over(task, [*_flags(extra), *lasting, *final])
        if raised:
            if out_option is None and user_error_from(raised[-1]) is not None:
                discard(RunFolder(out))
            raise raised.pop()
        return 0
    passed = ["-m", *_flags(extra), *deferred(lasting, extra), *final]
    holds_sweep(out, script, lasting)
    _make(out)
    with RunFolder(out).lock():
        begin_sweep(out, script, lasting)
        job_overrides = [[text for text in recordable(job) if not of_hydra(text)] for job in jobs]
        hydra_overrides = [text for text in lasting if of_hydra(text)]
        failure: Exception | None = None
        try:
            _hand_over(task, passed)
        except Exception as error:  # an error outside a job's own folder: the table is printed nevertheless
            failure = error
        finally:
            collect = import_module("rehearsal_torch.cli.verbs.collect")
            code: int = collect.finish(out, job_overrides, script, hydra_overrides, trusted)
        if failure is not None:
            raise failure
        return code


def _make(out: Path) -> None:
    with writing_to(out, ELSEWHERE):
        make_folder(out)


def _trusted_list(typed: Sequence[str], extra: str | None) -> str:
    """The modules and classes that this command line trusts, as an override's value."""
    names: list[str] = [] if extra is None else named_in(extra)
    for text in typed:
        if text.startswith("trusted="):
            value = read_override(text).value()
            names += trusted_names([str(item) for item in value] if isinstance(value, list) else value)
    return f"[{','.join(names)}]"


def _hand_over(task: Callable[[DictConfig], None], arguments: list[str]) -> None:
    """Lets Hydra run the task; errors are passed through unchanged."""
    # The help in conf/hydra contains ${typed_as:train}.
    OmegaConf.register_new_resolver("typed_as", spoken, replace=True)
    argv, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # Hydra would name the job by the file that the task stands in.
    with_name = [*arguments, f"hydra.job.name={task.__name__}"]
    sys.argv, os.environ["HYDRA_FULL_ERROR"] = [argv[0], *with_name], "1"
    try:
        hydra.main(version_base="1.3", config_path=str(CONF.resolve()), config_name="config")(task)()
    finally:
        sys.argv = argv
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full_error


def _new_folder(name: str) -> Path:
    """The path of a new folder: runs/<name>/<time>."""
    path = Path("runs") / name / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    attempt = 1
    while path.exists():
        attempt += 1
        path = path.with_name(f"{path.name.partition('.')[0]}.{attempt}")
    return path


def holds_sweep(out: Path, script: str, overrides: Sequence[str]) -> bool:
    """Whether a folder holds this sweep already; UserError for other content, as in `cli.resume`."""
    if out.exists() and not out.is_dir():
        raise UserError("expected a folder; this is a file", str(out), "Choose another out=")
    sweep = RunFolder(out).read_json(SWEEP, ("script", "overrides", "decisive"))
    if sweep:
        decisive = sweep["decisive"]
        if sweep["script"] != script or decisive != _decisive(overrides):
            command = join([*typed_as(sweep["script"]), "-m", *sweep["decisive"]])
            raise UserError(f"the folder holds another sweep: {command}", str(out), "Choose another out=")
        return True
    if out.exists() and any(not path.name.startswith(LOCK) for path in out.iterdir()):
        raise UserError("the folder is not empty and holds no sweep", str(out), "Choose another out=")
    return False


def begin_sweep(out: Path, script: str, overrides: Sequence[str]) -> None:
    """Writes sweep.json to a sweep's folder, without Hydra's own settings, such as the launcher."""
    if not holds_sweep(out, script, overrides):
        lasting = [text for text in recordable(overrides) if not of_hydra(text)]
        RunFolder(out).write_json(
            SWEEP, {"script": script, "overrides": lasting, "decisive": _decisive(overrides)}
        )


def of_hydra(override: str) -> bool:
    """Whether an override is one of Hydra's own settings."""
    return override.lstrip("+~").startswith("hydra")


def _decisive(overrides: Sequence[str]) -> list[str]:
    return [text for text in recordable(overrides) if not of_hydra(text) and not text.startswith("workers=")]


def recordable(overrides: Iterable[str]) -> list[str]:
    """Overrides without those of one command line: the run's location, trust and cluster."""
    return [text for text in overrides if not text.lstrip("+").startswith(("out=", "resume=", *APART))]
