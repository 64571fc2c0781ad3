"""Errors and signals that end a command, with its exit code, and checks that no foreign file is overwritten.

An error that the user can correct (`user_error`) ends a command with exit code 2 and without a traceback
(``HYDRA_FULL_ERROR=1`` shows it). Any other error is a bug and keeps its traceback.

SIGTERM (a cluster, `kill`), SIGHUP (a closed terminal) and the end of `minutes` (SIGALRM) act like Ctrl-C:
files being written are completed or left unchanged, the folder's status is "interrupted", and the exit code
is 128 + the signal's number.

Submitit's own handlers in a job ignore SIGTERM, so that the cluster kills the job half a minute later, and
answer the warning before the time limit by an error within the computation; `obey_cluster` replaces them.
"""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.user_error import UserError, user_error_from

# The remedy for a run folder that cannot be written to, and the errors of one.
ELSEWHERE = "Choose a folder that can be written to by out=FOLDER"
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
SIGNALS = ("SIGTERM", "SIGHUP")
# Seconds in which a second signal counts as the first.
PATIENCE = 5.0
_signal_times: list[float] = []
# The handlers that `obey_cluster` has set, by signal.
_handlers: dict[int, Any] = {}


def exit_code(run: Callable[[], int], interrupted: str | Callable[[], str]) -> int:
    """The exit code of `run`, or, with a message, 2 after a user's error and 128 + n after signal n."""
    show_bugs = os.environ.get("HYDRA_FULL_ERROR") == "1"
    try:
        with stopping():
            return run()
    except KeyboardInterrupt as error:
        suffix = f" by {error}" if isinstance(error, Stopped) else ""
        message = interrupted if isinstance(interrupted, str) else interrupted()
        print(message.replace("Interrupted", f"Interrupted{suffix}", 1), file=sys.stderr, flush=True)
        return code_of(error)
    except Exception as error:
        fault = user_error_from(error)
        if fault is None or show_bugs:
            raise
        print(fault, file=sys.stderr, flush=True)
        return 2


def of_edited_file(error: BaseException, what: str, where: Path, remedy: str) -> UserError | None:
    """A user error for an error that looks like a bug, but is most often caused by an edited file."""
    if not isinstance(error, LookupError | TypeError | AttributeError | ValueError):
        return None
    message = beginning(" ".join(str(error).split()), 200)
    what = f"{what} the content of the folder ({type(error).__name__}: {message})"
    return UserError(what, str(where), remedy)


@contextmanager
def writing_to(place: Path, remedy: str) -> Iterator[None]:
    """Replaces the remedy of errors about a place that may not be written to."""
    try:
        yield
    except OSError as error:
        fault = user_error_from(error)
        if fault is None or error.errno not in UNWRITABLE or not lies_in(fault.where, place):
            raise
        raise UserError(fault.what, fault.where, remedy) from error


def lies_in(named: str, place: Path) -> bool:
    """Whether one of two paths contains or equals the other."""
    path, target = Path(named).absolute(), place.absolute()
    return bool(named) and (path.is_relative_to(target) or target.is_relative_to(path))


def check_output(out: Path, names: Iterable[str], mark: str, beginning: str) -> None:
    """Raises a UserError if a folder has files `names`, but no file `mark` that begins as this command's."""
    if out.exists() and not out.is_dir():
        raise UserError("is a file", f"out={out}", "Name a folder")
    old = [name for name in names if (out / name).exists() or (out / name).is_symlink()]
    if old and not begins(out / mark, beginning):
        fault = (
            f"{' and '.join(old[:3])} {'exists' if len(old) == 1 else 'exist'} there already, and {mark} "
            "was not written by this command"
        )
        raise UserError(fault, f"out={out}", "Name another folder, or move them elsewhere")


def check_own_file(path: Path, beginning: str) -> None:
    """Raises a UserError if a file exists and was not written by this command."""
    if path.is_dir():
        raise UserError("is a folder", f"out={path}", "Name a file")
    if path.exists() and not begins(path, beginning):
        fault = "exists already, and was not written by this command"
        raise UserError(fault, f"out={path}", "Name another file, or move it elsewhere")


def begins(path: Path, beginning: str) -> bool:
    """Whether a file exists and begins with the given text."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(beginning.encode("utf-8"))) == beginning.encode("utf-8")


class Stopped(KeyboardInterrupt):
    """A termination signal, as an exception."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = int(number)

    def __str__(self) -> str:
        return signal.Signals(self.number).name


class OutOfTime(Stopped):
    """The end of the minutes that a command was given."""

    def __init__(self, minutes: float) -> None:
        super().__init__(signal.SIGALRM)
        self.minutes = minutes

    def __str__(self) -> str:
        return f"minutes={self.minutes:g}"


@contextmanager
def within(minutes: float | None) -> Iterator[None]:
    """Raises `OutOfTime` in the main thread when the minutes are over; None is no limit."""
    if minutes is None:
        yield
        return
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0:
        raise UserError(f"expected a number above 0, or null for no limit; got {minutes}", "minutes")
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        raise UserError("no clock can end a command here", "minutes", "Leave it out")

    def over(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise OutOfTime(minutes)

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def obey_cluster() -> None:
    """In a job that submitit has started, lets SIGTERM act like Ctrl-C, and the job continue after the
    warning before the time limit, unless it is to be queued again (``hydra.launcher.max_num_timeout``).
    """
    if "SUBMITIT_EXECUTOR" not in os.environ or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGTERM, _stop)
    number = getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}", None)
    requeue = None if number is None else signal.getsignal(number)
    if number is None or not callable(requeue) or requeue is _handlers.get(number):
        return

    def on_warning(number: int, frame: FrameType | None) -> None:
        # SystemExit ends a job that is queued again; other exceptions mean that it is not.
        with suppress(Exception):
            requeue(number, frame)

    _handlers[number] = on_warning
    signal.signal(number, on_warning)


@contextmanager
def stopping() -> Iterator[None]:
    """Turns termination signals into `Stopped`, raised in the main thread, and restores the previous
    handlers. Ignored signals (nohup) stay ignored. Does nothing outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _signal_times.clear()
    handlers = {
        number: signal.getsignal(number)
        for number in (getattr(signal, name, None) for name in SIGNALS)
        if number is not None
    }
    for number, handler in handlers.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


def code_of(error: KeyboardInterrupt) -> int:
    """The exit code after an interruption: 128 + the signal's number."""
    return 128 + (error.number if isinstance(error, Stopped) else int(signal.SIGINT))


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    # Schedulers often send a signal twice: the second must not interrupt the clean-up.
    now = time.monotonic()
    if _signal_times and now - _signal_times[-1] < PATIENCE:
        return
    _signal_times[:] = [now]
    raise Stopped(number)
