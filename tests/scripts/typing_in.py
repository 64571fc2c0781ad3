"""Commands as somebody types them."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOY = ("--config-dir", str(HERE / "conf"), "+experiment=toy")


@dataclass(frozen=True)
class Answer:
    """What came of a command."""

    code: int
    out: str
    err: str


def command(script, *arguments):
    return [sys.executable, str(ROOT / "scripts" / f"{script}.py"), *map(str, arguments)]


def surroundings(**more):
    kept = {key: value for key, value in os.environ.items() if key != "HYDRA_FULL_ERROR"}
    return {**kept, "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "", "MPLBACKEND": "agg", **more}


def typed(folder, script, *arguments, **more):
    """Runs a script in a folder."""
    done = subprocess.run(command(script, *arguments), cwd=folder, env=surroundings(**more), capture_output=True, text=True, timeout=300, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def lines(run):
    """What a run decided, round by round."""
    return [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]


def typed_and_killed(folder, script, *arguments, once, by=signal.SIGKILL, meanwhile=None):
    """Runs a script in a folder and kills it, or asks it to end, as soon as `once()` is true.

    Returns:
        The exit code, and the processes that it had started. What it said is in killed.log.
    """
    with (folder / "killed.log").open("w") as log:
        process = subprocess.Popen(command(script, *arguments), cwd=folder, env=surroundings(), stdout=log, stderr=log, start_new_session=True)
        try:
            ends = time.monotonic() + 120
            while not once():
                assert process.poll() is None, f"it ended before it could be killed:\n{(folder / 'killed.log').read_text()}"
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
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    return [(int(number), int(parent), state) for number, parent, state in map(str.split, table.splitlines())]


def gone(started, seconds=20):
    """Whether processes end within a time."""
    ends = time.monotonic() + seconds
    while any(number in started and not state.startswith("Z") for number, _, state in processes()):
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True
