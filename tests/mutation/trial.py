"""A trial: whether the tests of a module fail once the module has a fault.

Every trial is a forked process, in which the module's code is replaced while it is imported; no file is
changed. The parent has imported what the tests import of other packages, so that a trial takes little longer
than the tests, and nothing of this package.
"""

import importlib
import importlib.machinery
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType

# Imported anew by every trial: what is tested, and what runs the tests.
OWN = ("rehearsal_torch", "tests", "conftest", "__main__", "_pytest", "pytest", "pluggy", "xdist", "nbmake")
# What a trial may end with: the tests passed, failed, or took too long.
SURVIVED, KILLED, LATE, BROKEN = "survived", "killed", "late", "broken"
# The lanes that every change passes (pyproject.toml says what the markers stand for).
FAST, SLOW = "not slow and not papers and not nightly", "(slow or papers) and not nightly and not alone"
# Pytest's exit code where no test is selected.
NONE = 5


def preload(names: list[str]) -> None:
    """Imports modules of other packages, as far as they can be imported."""
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)


def imported(tests: Sequence[Path | str], log: Path, lane: str = FAST) -> tuple[list[str], float | None]:
    """Runs the tests on the module as it is.

    Args:
        tests: The test files, or names of tests in them.
        log: Where the outcome is written.
        lane: The tests of it that are run.

    Returns:
        The modules of other packages that are imported by them, and the seconds that they take; None if there
        are none.

    Raises:
        RuntimeError: if they fail.
    """
    read, write = os.pipe()
    began = time.monotonic()
    number = os.fork()
    if number == 0:
        os.close(read)
        code = _tested(tests, log, lane)
        names = [name for name in sys.modules if name.partition(".")[0] not in OWN]
        with os.fdopen(write, "w") as stream:
            stream.write("\n".join(names))
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as stream:
        names = stream.read().splitlines()
    ended = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    if ended not in (0, NONE):
        raise RuntimeError(f"{tests[0]} fails before anything is changed: see {log}")
    return names, time.monotonic() - began if ended == 0 else None


def outcome(
    module: str, code: CodeType, tests: Sequence[Path | str], log: Path, seconds: float, lane: str = FAST
) -> str:
    """Runs the tests with a module's code replaced.

    Args:
        module: The module's dotted name.
        code: Its changed code.
        tests: The test files.
        log: Where the outcome is written.
        seconds: The time after which the trial ends as `LATE`: the fault made something endless.
        lane: The tests of it that are run.
    """
    number = os.fork()
    if number == 0:
        _replace(module, code)
        os._exit(_tested(tests, log, lane))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            ended = os.waitstatus_to_exitcode(status)
            return {0: SURVIVED, NONE: BROKEN}.get(ended, KILLED)
        time.sleep(0.02)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return LATE


def _replace(module: str, code: CodeType) -> None:
    """Has the module imported with other code."""
    own = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
        return code if fullname == module else own(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code


def _tested(tests: Sequence[Path | str], log: Path, lane: str) -> int:
    """Runs the tests of a lane of some files up to the first failure, and returns pytest's exit code."""
    import pytest

    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    try:
        return int(
            pytest.main(
                [
                    "-x",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "no:nbmake",
                    "--assert=plain",
                    "-o",
                    "addopts=",
                    "--import-mode=importlib",
                    "-m",
                    lane,
                    *map(str, tests),
                ]
            )
        )
    except BaseException:
        traceback.print_exc()
        return 70
