"""The main function of commands that are run by Hydra: from arguments to jobs.

All arguments are checked first, without importing torch, so that errors in them are reported at once. Then
the run folder is determined, and Hydra runs the job or the sweep. A sweep ends with a table of its jobs,
including failed ones.

Exit codes: 0 success; 1 a job failed; 2 an error in the arguments or a folder; 130 interrupted (128 + n by
signal n).
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from shlex import join

import hydra
from hydra._internal.utils import get_args_parser
from omegaconf import DictConfig, OmegaConf

from rehearsal_torch.cli.choice.asked import with_asked
from rehearsal_torch.cli.errors import exit_code, writing_to
from rehearsal_torch.cli.overrides import composed, deferred, read_override
from rehearsal_torch.cli.resume import SWEEP, recorded
from rehearsal_torch.cli.spelling import quoted, spoken, typed_as
from rehearsal_torch.cli.sweep import begin, of_hydra, settled
from rehearsal_torch.cli.tasks import APART, ELSEWHERE, finish, raised, recordable
from rehearsal_torch.cli.validation import check
from rehearsal_torch.files.writing import make_folder
from rehearsal_torch.methods.conf import CONF, named_in, trusted_names
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError


def main(
    task: Callable[[DictConfig], None],
    arguments: Sequence[str] | None = None,
    conf: Path = CONF,
) -> int:
    """Runs a command.

    Args:
        task: The function that Hydra calls for each job; its name is the command's.
        arguments: The arguments after the script's name; None for those of the process.
        conf: The folder with config.yaml.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    folders: list[Path] = []
    return exit_code(
        lambda: _run(task, typed, conf, folders.append),
        lambda: interrupted(task.__name__, typed, folders),
    )


def interrupted(script: str, typed: Sequence[str], folders: Sequence[Path]) -> str:
    """What to type after an interruption.

    Args:
        folders: The folder of the run, once it is known.
    """
    if not folders or not any((folders[0] / name).is_file() for name in ("run.json", SWEEP)):
        return "Interrupted; run the same command again."
    # What belongs to a command line, not to the run, and what Hydra was told.
    kept = [text for text in typed if text.startswith(APART) or of_hydra(text)]
    extra = get_args_parser().parse_args(list(typed)).config_dir
    flags = ["--config-dir", extra] if extra else []
    return (
        f"Interrupted; to continue, type {join([*typed_as(script), *flags, f'resume={folders[0]}', *kept])}"
    )


def _run(
    task: Callable[[DictConfig], None],
    arguments: list[str],
    conf: Path,
    begun: Callable[[Path], None],
) -> int:
    parsed = get_args_parser().parse_args(arguments)
    if parsed.help or parsed.hydra_help or parsed.cfg or parsed.info is not None or parsed.shell_completion:
        if not (parsed.hydra_help or parsed.shell_completion):
            # What Hydra would end with a traceback.
            if parsed.multirun:
                raise UserError("a sweep has no single configuration to show", "--multirun", "Leave it out")
            composed(conf, parsed.overrides, False, parsed.config_dir, complete=False)
        _hand_over(task, arguments, conf)
        return 0
    if parsed.config_dir and not Path(parsed.config_dir).is_dir():
        raise UserError(
            "there is no such folder", f"--config-dir {parsed.config_dir}", "Give a folder like conf"
        )
    script, typed, multirun = task.__name__, list(parsed.overrides), bool(parsed.multirun)
    resume = [
        text.partition("=")[2].strip("'\"")
        for text in typed
        if text.startswith("resume=") and text != "resume=null"
    ]
    trust: list[str] = []
    if resume:
        if any(text.startswith("out=") for text in typed):
            raise UserError("resume= names the folder already", "out", "Leave out= out")
        rest = [text for text in typed if not text.startswith(("resume=", "trusted="))]
        trust = [f"trusted={_listed(typed, parsed.config_dir)}"]
        typed, multirun = recorded(resume[0], rest, script)
    else:
        typed = with_asked(typed)
    config, jobs = composed(conf, [*typed, *trust], multirun, parsed.config_dir)
    trusted = OmegaConf.select(config, "trusted")
    named = trusted_names(OmegaConf.to_container(trusted) if OmegaConf.is_config(trusted) else trusted)
    check(config, script, jobs, typed)
    out = (
        Path(resume[0])
        if resume
        else Path(str(config.out))
        if config.out is not None
        else _fresh(str(config.name))
    )
    begun(out)
    flags = ["--config-dir", parsed.config_dir] if parsed.config_dir else []
    kept = [text for text in typed if not text.startswith("out=")]
    handed = deferred(conf, kept, parsed.config_dir) if multirun else kept
    passed = [*(["-m"] if multirun else []), *flags, *handed, *trust, f"out={quoted(str(out))}"]
    if not multirun:
        # A path that is a file, or inside one, is reported when the job checks it.
        with suppress(FileExistsError, NotADirectoryError):
            _made(out)
        _hand_over(task, passed, conf)
        if raised:
            raise raised.pop()
        return 0
    settled(out, script, kept)
    _made(out)
    with RunFolder(out).lock():
        begin(out, script, kept)
        return _swept(
            task,
            passed,
            conf,
            out,
            [[text for text in recordable(job) if not of_hydra(text)] for job in jobs],
            script,
            [text for text in kept if of_hydra(text)],
            None if trusted is None else named,
        )


def _made(out: Path) -> None:
    """Makes the folder of a run."""
    with writing_to(out, ELSEWHERE):
        make_folder(out)


def _swept(
    task: Callable[[DictConfig], None],
    passed: list[str],
    conf: Path,
    out: Path,
    jobs: list[list[str]],
    script: str,
    again: list[str],
    trusted: list[str] | None,
) -> int:
    """Runs a sweep, and writes its tables."""
    failure: Exception | None = None
    try:
        _hand_over(task, passed, conf)
    except Exception as error:  # an error outside a job's own folder: the table is printed nevertheless
        failure = error
    finally:
        code = finish(out, jobs, script, again, trusted)
    if failure is not None:
        raise failure
    return code


def _listed(typed: Sequence[str], extra: str | None) -> str:
    """The modules and classes that are trusted on this command line, as an override's value."""
    named: list[str] = [] if extra is None else named_in(extra)
    for text in typed:
        if text.startswith("trusted="):
            value = read_override(text).value()
            named += trusted_names([str(each) for each in value] if isinstance(value, list) else value)
    return f"[{','.join(named)}]"


def _hand_over(task: Callable[[DictConfig], None], arguments: list[str], conf: Path) -> None:
    """Lets Hydra run the task; errors are passed through unchanged."""
    # The help in conf/hydra contains ${typed_as:train}.
    OmegaConf.register_new_resolver("typed_as", spoken, replace=True)
    typed, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # Hydra would name the job by the file that the task stands in.
    named = [*arguments, f"hydra.job.name={task.__name__}"]
    sys.argv, os.environ["HYDRA_FULL_ERROR"] = [typed[0], *named], "1"
    try:
        hydra.main(version_base="1.3", config_path=str(conf.resolve()), config_name="config")(task)()
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
