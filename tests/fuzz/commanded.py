"""Whole commands, as they are typed: the first few as processes of their own, the others in this one."""

import contextlib
import io
import subprocess
from pathlib import Path

from rehearsal_torch.cli import main as command_line
from rehearsal_torch.cli.verbs import learn_graph, prepare
from rehearsal_torch.cli.verbs.decide import decide
from tests.fuzz.verdicts import NO_NUMBER, FaultError, lines_of, recorded, worded
from tests.scripts.typing_in import command, surroundings

# Seconds of the processor and by the clock: a whole command imports, decides and draws.
LIMITS = {"busy": 12.0, "clock": 90.0}
# So many of a family's commands are processes of their own, which take seconds to start; the others run in
# this one.
PROCESSES = 2
SMALL = {
    "own_table": ["+experiment=own_table", "decision=care", "limit=2", "workers=1", "dataset.validation=0.5"],
    "own_system": [
        "+experiment=own_system",
        "search.screened=16",
        "search.starts=6",
        "search.steps=5",
        "objective.draws=8",
        "objective.evaluation_draws=16",
        "workers=1",
    ],
}
MAINS = {
    "decide": lambda typed: command_line.main(decide, typed),
    "learn_graph": learn_graph.main,
    "prepare": prepare.main,
}


def deciding(experiment, path="table.csv", task="task.yaml"):
    """What is typed to decide from a table and a task."""
    return [*SMALL[experiment], f"path={path}", f"dataset.task={task}", "out=run"]


def typed_in(script, typed, apart, run="run"):
    """What a command answers, judged: "accepted" with finite decisions, or "refused" in words.

    Args:
        script: The script's name.
        typed: What is typed behind it.
        apart: Whether as a process of its own.
        run: The run folder whose decisions are looked at.
    """
    before = lines_of(Path(run))
    if apart:
        try:
            done = subprocess.run(
                command(script, *typed), env=surroundings(), capture_output=True, timeout=60, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise FaultError(f"still running after 60 s: {error}") from None
        code, out, err = (
            done.returncode,
            done.stdout.decode("utf-8", "replace"),
            done.stderr.decode("utf-8", "replace"),
        )
    else:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = MAINS[script](list(typed))
        out, err = out.getvalue(), err.getvalue()
    if "Traceback" in err or "Traceback" in out:
        raise FaultError(f"a traceback, exit code {code}:\n{err[-6000:]}")
    if code == 2:
        worded(err.strip())
        return "refused"
    if code != 0:
        raise FaultError(f"exit code {code}:\n{out[-1000:]}\n{err[-3000:]}")
    if odd := next((line for line in out.splitlines() if NO_NUMBER.search(line)), None):
        raise FaultError(f"printed what is no number: {odd}")
    recorded(Path(run), before)
    return "accepted"
