"""Whole commands, as they are typed, in this process."""

import contextlib
import io
from pathlib import Path

from rehearsal_torch.cli import main as command_line
from rehearsal_torch.cli.main import decide
from rehearsal_torch.console_command import run
from tests.fuzz.verdicts import NO_NUMBER, FaultError, lines_of, recorded, worded

# Seconds of the processor and by the clock: a whole command composes, decides and draws.
LIMITS = {"busy": 12.0, "clock": 90.0}
SMALL = {
    "own_table": ["+experiment=own_table", "decision=care", "limit=2", "workers=1", "dataset.validation=0.5"],
    "own_system": [
        "+experiment=own_system",
        "search.screened=16",
        "search.starts=6",
        "search.steps=5",
        "objective.draws=8",
        "workers=1",
    ],
}
MAINS = {
    "decide": lambda typed: command_line.main(decide, typed),
    "learn_graph": lambda typed: run("learn_graph", typed),
}


def deciding(experiment, path="table.csv", task="task.yaml"):
    """What is typed to decide from a table and a task."""
    return [*SMALL[experiment], f"path={path}", f"dataset.task={task}", "out=run"]


def typed_in(script, typed, run="run"):
    """Types a command: accepted with finite decisions, or refused in words.

    Args:
        script: The script's name.
        typed: What is typed behind it.
        run: The run folder whose decisions are looked at.
    """
    before = lines_of(Path(run))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = MAINS[script](list(typed))
    out, err = out.getvalue(), err.getvalue()
    if "Traceback" in err or "Traceback" in out:
        raise FaultError(f"a traceback, exit code {code}:\n{err[-6000:]}")
    if code == 2:
        worded(err.strip())
        return
    if code != 0:
        raise FaultError(f"exit code {code}:\n{out[-1000:]}\n{err[-3000:]}")
    if odd := next((line for line in out.splitlines() if NO_NUMBER.search(line)), None):
        raise FaultError(f"printed what is no number: {odd}")
    recorded(Path(run), before)
