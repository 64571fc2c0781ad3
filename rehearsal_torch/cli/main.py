"""The commands that are run by Hydra: from arguments to jobs.

All arguments are checked first, without importing torch, so that errors in them are reported at once: what a
task does lies in a module of its own (`cli.verbs`), which is imported afterwards. Then the run folder is
determined, and Hydra runs the job or the sweep: many jobs in one folder, which records its sweep. A sweep
ends with a table of its jobs, including failed ones.

Exit codes: 0 success; 1 a job failed; 2 an error in the arguments or a folder; 130 interrupted (128 + n by
signal n).
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
from rehearsal_torch.cli.resume import SWEEP, recorded
from rehearsal_torch.files.atomic_write import make_folder
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.methods.hydra_config import CONF, named_in, trusted_names
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

# Overrides that belong to one command line, not to the run.
APART = ("trusted=", "parallel=", "dask.")
# The errors raised by a job outside a sweep. Hydra would print its own line about an error that passes
# through it.
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
    # Of what modules load, nothing is garbage; looking for some takes a tenth of the loading, and of the fit.
    gc.disable()
    try:
        work = import_module(f"rehearsal_torch.cli.verbs.{script}").work
        carry_out = import_module("rehearsal_torch.cli.job").carry_out
        gc.freeze()
    finally:
        gc.enable()
    carry_out(script, work, config)


def main(task: Callable[[DictConfig], None], typed: Sequence[str]) -> int:
    """Runs a command by the function that Hydra calls for each job; its name is the command's."""
    folders: list[Path] = []
    return exit_code(
        lambda: _run(task, list(typed), folders.append),
        lambda: interrupted(task.__name__, typed, folders),
    )


def interrupted(script: str, typed: Sequence[str], folders: Sequence[Path]) -> str:
    """What to type after an interruption."""
    if not folders or not any((folders[0] / name).is_file() for name in ("run.json", SWEEP)):
        return "Interrupted; run the same command again."
    # What belongs to a command line, not to the run, and what Hydra was told.
    kept = [text for text in typed if text.startswith(APART) or of_hydra(text)]
    extra = get_args_parser().parse_args(list(typed)).config_dir
    words = [*typed_as(script), *_flags(extra), f"resume={folders[0]}", *kept]
    return f"Interrupted; to continue, type {join(words)}"


def _flags(extra: str | None) -> list[str]:
    return ["--config-dir", extra] if extra else []


def _run(task: Callable[[DictConfig], None], arguments: list[str], begun: Callable[[Path], None]) -> int:
    parsed = get_args_parser().parse_args(arguments)
    script, typed, extra = task.__name__, list(parsed.overrides), parsed.config_dir
    if parsed.help or parsed.hydra_help or parsed.cfg or parsed.info is not None or parsed.shell_completion:
        if not (parsed.hydra_help or parsed.shell_completion):
            # What Hydra would end with a traceback.
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
        rest = [text for text in typed if not text.startswith(("resume=", "trusted="))]
        trust = [f"trusted={_listed(typed, extra)}"]
        typed, multirun = recorded(resume[0], rest, script)
    else:
        typed = with_asked(typed)
    config, jobs = composed([*typed, *trust], multirun, extra)
    trusted = OmegaConf.select(config, "trusted")
    named = trusted_names(OmegaConf.to_container(trusted) if OmegaConf.is_config(trusted) else trusted)
    check(config, script, jobs, typed)
    given = resume[0] if resume else config.out
    out = _fresh(str(config.name)) if given is None else Path(str(given))
    begun(out)
    kept = [text for text in typed if not text.startswith("out=")]
    last = [*trust, f"out={quoted(str(out))}"]
    if not multirun:
        # A path that is a file, or inside one, is reported when the job checks it.
        with suppress(FileExistsError, NotADirectoryError):
            _make(out)
        _hand_over(task, [*_flags(extra), *kept, *last])
        if raised:
            raise raised.pop()
        return 0
    passed = ["-m", *_flags(extra), *deferred(kept, extra), *last]
    holds_sweep(out, script, kept)
    _make(out)
    with RunFolder(out).lock():
        begin_sweep(out, script, kept)
        own = [[text for text in recordable(job) if not of_hydra(text)] for job in jobs]
        again = [text for text in kept if of_hydra(text)]
        failure: Exception | None = None
        try:
            _hand_over(task, passed)
        except Exception as error:  # an error outside a job's own folder: the table is printed nevertheless
            failure = error
        finally:
            ending = import_module("rehearsal_torch.cli.verbs.collect")
            code: int = ending.finish(out, own, script, again, None if trusted is None else named)
        if failure is not None:
            raise failure
        return code


def _make(out: Path) -> None:
    """Makes the folder of a run."""
    with writing_to(out, ELSEWHERE):
        make_folder(out)


def _listed(typed: Sequence[str], extra: str | None) -> str:
    """The modules and classes that are trusted on this command line, as an override's value."""
    named: list[str] = [] if extra is None else named_in(extra)
    for text in typed:
        if text.startswith("trusted="):
            value = read_override(text).value()
            named += trusted_names([str(each) for each in value] if isinstance(value, list) else value)
    return f"[{','.join(named)}]"


def _hand_over(task: Callable[[DictConfig], None], arguments: list[str]) -> None:
    """Lets Hydra run the task; errors are passed through unchanged."""
    # The help in conf/hydra contains ${typed_as:train}.
    OmegaConf.register_new_resolver("typed_as", spoken, replace=True)
    typed, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # Hydra would name the job by the file that the task stands in.
    named = [*arguments, f"hydra.job.name={task.__name__}"]
    sys.argv, os.environ["HYDRA_FULL_ERROR"] = [typed[0], *named], "1"
    try:
        hydra.main(version_base="1.3", config_path=str(CONF.resolve()), config_name="config")(task)()
    finally:
        sys.argv = typed
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = full_error


def _fresh(name: str) -> Path:
    """The path of a new folder: runs/<name>/<time>."""
    path = Path("runs") / name / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{path.name.partition('.')[0]}.{number}")
    return path


def holds_sweep(out: Path, script: str, overrides: Sequence[str]) -> bool:
    """Whether a folder holds this sweep already; the rule is that of `cli.resume`. Nothing is changed."""
    if out.exists() and not out.is_dir():
        raise UserError("expected a folder; this is a file", str(out), "Choose another out=")
    before = RunFolder(out).read_json(SWEEP, ("script", "overrides", "decisive"))
    if before:
        decisive = before["decisive"]
        if before["script"] != script or decisive != _decisive(overrides):
            command = join([*typed_as(before["script"]), "-m", *before["decisive"]])
            raise UserError(f"the folder holds another sweep: {command}", str(out), "Choose another out=")
        return True
    if out.exists() and any(not path.name.startswith(LOCK) for path in out.iterdir()):
        raise UserError("the folder is not empty and holds no sweep", str(out), "Choose another out=")
    return False


def begin_sweep(out: Path, script: str, overrides: Sequence[str]) -> None:
    """Writes sweep.json to a sweep's folder. Hydra's own settings, such as the launcher, are not stored: they
    must be given each time.
    """
    if not holds_sweep(out, script, overrides):
        kept = [text for text in recordable(overrides) if not of_hydra(text)]
        RunFolder(out).write_json(
            SWEEP, {"script": script, "overrides": kept, "decisive": _decisive(overrides)}
        )


def of_hydra(override: str) -> bool:
    """Whether an override is one of Hydra's own settings."""
    return override.lstrip("+~").startswith("hydra")


def _decisive(overrides: Sequence[str]) -> list[str]:
    return [text for text in recordable(overrides) if not of_hydra(text) and not text.startswith("workers=")]


def recordable(overrides: Iterable[str]) -> list[str]:
    """Overrides without those for the run's location, for trust and for a cluster, which belong to one
    command line, not to the run.
    """
    return [text for text in overrides if not text.lstrip("+").startswith(("out=", "resume=", *APART))]
