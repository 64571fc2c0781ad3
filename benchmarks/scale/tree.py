"""Runs a command and writes what it spent, with all processes that it started.

    python benchmarks/scale/tree.py RESULT.json COMMAND ARGUMENT ...

RESULT.json gets ``code`` (of the command), ``wall`` (seconds until it ended), ``cpu`` (user and system
seconds of all processes) and ``memory`` (the largest resident set of one process, in MB). On Linux, processes
that outlive those that started them are waited for here and counted as well (prctl PR_SET_CHILD_SUBREAPER);
elsewhere only those count that were waited for by the process that started them. If a process is still there
five minutes after the end of the command, nothing is written (SIGALRM): no figure is better than one that
lacks something.

It imports nothing but the standard library, so that its own memory is not taken for that of the command (a
child begins with the largest resident set of its parent).
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SUBREAPER = 36
LATE = 300


def main(result: str, *command: str) -> int:
    """Runs the command; its exit code."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    found = {"code": 0.0, "wall": 0.0, "cpu": 0.0, "memory": 0.0}
    began = time.perf_counter()
    process = subprocess.Popen(command)
    while True:
        try:
            number, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        found["cpu"] += usage.ru_utime + usage.ru_stime
        found["memory"] = max(found["memory"], usage.ru_maxrss / unit)
        if number == process.pid:
            found["wall"] = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            signal.alarm(LATE)
    found["code"] = process.returncode
    Path(result).write_text(json.dumps(found), encoding="ascii")
    return 0 if process.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
