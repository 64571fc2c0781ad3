"""Commands as somebody types them."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path

from rehearsal_torch.cli.main import decide, main, train
from rehearsal_torch.console_command import run
from tests.places import ROOT

HERE = Path(__file__).resolve().parent
TOY = ("--config-dir", str(HERE / "conf"), "+experiment=toy")


@dataclass(frozen=True)
class Answer:
    """What came of a command."""

    code: int
    out: str
    err: str
    processor: float = math.nan
    """Seconds that the process and what it waited for have spent."""


def command(script, *arguments):
    return [sys.executable, str(ROOT / "scripts" / f"{script}.py"), *map(str, arguments)]


def surroundings(**more):
    kept = {key: value for key, value in os.environ.items() if key != "HYDRA_FULL_ERROR"}
    return {
        **kept,
        "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "",
        "MPLBACKEND": "agg",
        **more,
    }


def typed(folder, script, *arguments, **more):
    """What came of a script in a folder; see `ended`."""
    return ended(command(script, *arguments), folder, surroundings(**more))


def ended(arguments, folder, env):
    """What came of a process in a folder; one that takes more than 300 seconds is killed (code -9)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(arguments, cwd=folder, env=env, stdout=out, stderr=err)
        late = threading.Timer(300, process.kill)
        late.start()
        try:
            # The usage of this child alone: other children of the tests end at times of their own.
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Answer(process.returncode, out.read(), err.read(), usage.ru_utime + usage.ru_stime)


RUN = {"train": partial(main, train), "decide": partial(main, decide), "collect": partial(run, "collect")}


def called(folder, script, *arguments, path=HERE):
    """What a script does, without a process of its own (which takes seconds to begin): for all that does not
    depend on there being one.

    Args:
        folder: Where it is typed.
        script: train, decide or collect.
        *arguments: What is typed behind the script's name.
        path: Where modules are found besides; what `typed` puts on PYTHONPATH.
    """
    out, err = StringIO(), StringIO()
    sys.path.insert(0, str(path))
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            code = RUN[script]([str(each) for each in arguments])
    finally:
        sys.path.remove(str(path))
    return Answer(code, out.getvalue(), err.getvalue())


def lines(run):
    """What a run decided, round by round."""
    return [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]


def typed_and_killed(folder, script, *arguments, once, by=signal.SIGKILL, meanwhile=None):
    """Runs a script in a folder and kills it, or asks it to end, as soon as `once()` is true.

    Returns:
        The exit code, and the processes that it had started. What it said is in killed.log.
    """
    with (folder / "killed.log").open("w") as log:
        process = subprocess.Popen(
            command(script, *arguments),
            cwd=folder,
            env=surroundings(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            ends = time.monotonic() + 120
            while not once():
                assert process.poll() is None, (
                    f"it ended before it could be killed:\n{(folder / 'killed.log').read_text()}"
                )
                assert time.monotonic() < ends, (folder / "killed.log").read_text()
                time.sleep(0.005)
            if meanwhile is not None:
                meanwhile()
            started = [number for number, parent, _ in processes() if parent == process.pid]
            process.send_signal(by)
            return process.wait(60), started
        finally:
            process.kill()
            process.wait()


def processes():
    """Number, parent and state of every process."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    return [(int(number), int(parent), state) for number, parent, state in map(str.split, table.splitlines())]


def gone(started, seconds=20):
    """Whether processes end within a time."""
    ends = time.monotonic() + seconds
    while any(number in started and not state.startswith("Z") for number, _, state in processes()):
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True
