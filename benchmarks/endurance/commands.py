"""The commands that are killed: train, decide, trials, report, and an optimiser with a file.

Each runs in a folder of its own, as typed there, and can be typed again after it was killed. Its results are
the files below `run`.
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A small ward, whose training and decisions take seconds.
WARD = ROOT / "tests/scripts"
TOY = ("--config-dir", str(WARD / "conf"), "+experiment=toy")
CBO = ("+experiment=cbo", "limit=6", "search.screened=64", "search.starts=6", "search.steps=15")
# The trials that the optimiser tells.
TRIALS = 20


@dataclass(frozen=True)
class Command:
    """A command that may be killed.

    Attributes:
        run: Does what is typed in the current folder, and returns the exit code.
        lines: The file that grows line by line, relative to the folder; empty if there is none.
        replaced: Files that are replaced as a whole: at any time the old bytes or the new ones.
        prepare: Lays out what the command needs in a new folder.
    """

    run: Callable[[], int]
    lines: str = ""
    replaced: tuple[str, ...] = ()
    prepare: Callable[[Path], object] = Path.exists


def commands(shared: Path) -> dict[str, Command]:
    """The commands by name.

    Args:
        shared: A folder with a finished training, ``trained``, and finished decisions, ``decided``.
    """
    known = str(shared / "trained/checkpoint")
    lines = "run/decisions.jsonl"
    return {
        "train": Command(partial(_typed, "train", TOY), lines),
        "decide": Command(partial(_typed, "decide", (*TOY, f"checkpoint={known}", "workers=1")), lines),
        "decide, 2 workers": Command(
            partial(_typed, "decide", (*TOY, f"checkpoint={known}", "workers=2")), lines
        ),
        "trials": Command(partial(_typed, "decide", CBO), lines),
        "report": Command(_reported, "", ("run/report.html",), partial(_copied, shared / "decided")),
        "optimiser": Command(_asked_and_told, "", ("run/trials.json",)),
    }


def preload() -> None:
    """Imports what all commands need, so that kills hit their work and not their imports."""
    import lightning
    import matplotlib.pyplot
    import torch

    import rehearsal_torch.api.optimiser
    import rehearsal_torch.cli.verbs.train
    import rehearsal_torch.reporting.page.run_page
    import rehearsal_torch.reporting.run_report  # noqa: F401

    torch.set_num_threads(1)
    _ = lightning, matplotlib.pyplot
    sys.path.insert(0, str(WARD))


def finished(shared: Path) -> int:
    """Makes the training and the decisions that other commands start from, in the current folder."""
    for name, verb, arguments in (
        ("trained", "train", TOY),
        ("decided", "decide", (*TOY, f"checkpoint={shared / 'trained/checkpoint'}", "workers=1")),
    ):
        if (code := _typed(verb, arguments, name)) != 0:
            return code
    return 0


def _typed(verb: str, arguments: Sequence[str], out: str = "run") -> int:
    """Types a command, with resume= where its folder holds a run."""
    from rehearsal_torch.cli.main import decide, main, train

    configured = arguments[:2] if arguments[0] == "--config-dir" else ()
    begun = Path(out, "run.json").is_file()
    typed = [*configured, f"resume={out}"] if begun else [*arguments, f"out={out}"]
    return main({"train": train, "decide": decide}[verb], typed)


def _reported() -> int:
    from rehearsal_torch.console_command import run

    return run("report", ["run", "cases=3"])


def _copied(finished_run: Path, folder: Path) -> None:
    shutil.copytree(finished_run, folder / "run")


def _asked_and_told() -> int:
    from benchmarks.endurance.rounds import optimiser, outcome

    made = optimiser(Path("run/trials.json"))
    while len(made.trials) < TRIALS or made.pending:
        (action,) = made.pending or made.ask()
        made.tell(action, outcome(action))
    return 0


def in_child(
    command: Callable[[], int],
    folder: Path,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    writing: int | None = None,
) -> int:
    """Forks a process that runs a command in a folder, and returns its number.

    Args:
        command: The command.
        folder: The folder.
        around: Makes the context within which it runs.
        writing: Where it prints to; None is ``said.log`` in the folder.
    """
    number = os.fork()
    if number:
        return number
    code = 70
    try:
        os.chdir(folder)
        log = os.open("said.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) if writing is None else writing
        os.dup2(log, 1)
        os.dup2(log, 2)
        with around():
            code = command()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)
