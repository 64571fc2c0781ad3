"""How errors and signals end a command, and the check that no foreign files are overwritten.

An error that the user can correct (`user_error`) ends a command with exit code 2 and without a traceback
(``HYDRA_FULL_ERROR=1`` shows it). Any other error is a bug and keeps its traceback.

SIGTERM (a cluster, `kill`) and SIGHUP (a closed terminal) act like Ctrl-C.

Files being written are completed or left unchanged, the folder's status is "interrupted", and the exit code
is 128 + the signal's number.

Jobs that submitit starts follow its rules until `obey_cluster` is called: SIGTERM is ignored, so that a job
that a cluster ends is killed in the middle of its work half a minute later; and the warning before the time
limit is answered by an error in the middle of the work, which takes it for one of its own.

The thread by which joblib manages its processes may fail while these are given up; what it then says is no
news to anybody, and is not shown.
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

# What to do where the folder of a run cannot be written to.
ELSEWHERE = "Choose a folder that can be written to by out=FOLDER"
# Of these, those of a place that cannot be written to.
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
SIGNALS = ("SIGTERM", "SIGHUP")
# Seconds in which a second signal counts as the first.
PATIENCE = 5.0
_asked: list[float] = []
# The handlers that `obey_cluster` has set.
_warned: dict[int, Any] = {}
# The class of the thread by which joblib manages its processes, and the seconds by which the signal may reach
# these before it reaches this process.
MANAGER, AHEAD = "_ExecutorManagerThread", 0.5
_interrupted = threading.Event()
_usual = [threading.excepthook]


def exit_code(run: Callable[[], int], interrupted: str | Callable[[], str]) -> int:
    """The exit code of a command: that of `run`; 2 after an error that the user can correct, 128 + n after
    signal n; both are printed.
    """
    full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    try:
        with stopping():
            return run()
    except KeyboardInterrupt as error:
        named = f" by {error}" if isinstance(error, Stopped) else ""
        message = interrupted if isinstance(interrupted, str) else interrupted()
        print(message.replace("Interrupted", f"Interrupted{named}", 1), file=sys.stderr, flush=True)
        return code_of(error)
    except Exception as error:
        wrong = user_error_from(error)
        if wrong is None or full:
            raise
        print(wrong, file=sys.stderr, flush=True)
        return 2


def of_edited_file(error: BaseException, what: str, where: Path, remedy: str) -> UserError | None:
    """An error that would count as a bug, and is most often caused by an edited file of a folder."""
    if not isinstance(error, LookupError | TypeError | AttributeError | ValueError):
        return None
    text = beginning(" ".join(str(error).split()), 200)
    what = f"{what} the content of the folder ({type(error).__name__}: {text})"
    return UserError(what, str(where), remedy)


@contextmanager
def writing_to(place: Path, remedy: str) -> Iterator[None]:
    """Gives errors of a place that may not be written to a remedy of their own."""
    try:
        yield
    except OSError as error:
        wrong = user_error_from(error)
        if wrong is None or error.errno not in UNWRITABLE or not lies_in(wrong.where, place):
            raise
        raise UserError(wrong.what, wrong.where, remedy) from error


def lies_in(named: str, place: Path) -> bool:
    """Whether a file is some place, one that it lies in, or one that lies in it."""
    one, other = Path(named).absolute(), place.absolute()
    return bool(named) and (one.is_relative_to(other) or other.is_relative_to(one))


def check_output(out: Path, names: Iterable[str], mark: str, beginning: str) -> None:
    """Checks that a folder may be written to, without changing it."""
    if out.exists() and not out.is_dir():
        raise UserError("is a file", f"out={out}", "Name a folder")
    there = [name for name in names if (out / name).exists() or (out / name).is_symlink()]
    if there and not begins(out / mark, beginning):
        what = (
            f"{' and '.join(there[:3])} {'exists' if len(there) == 1 else 'exist'} there already, and {mark} "
            "was not written by this command"
        )
        raise UserError(what, f"out={out}", "Name another folder, or move them elsewhere")


def check_own_file(path: Path, beginning: str) -> None:
    """Checks that a file is free, or was written by this command."""
    if path.is_dir():
        raise UserError("is a folder", f"out={path}", "Name a file")
    if path.exists() and not begins(path, beginning):
        what = "exists already, and was not written by this command"
        raise UserError(what, f"out={path}", "Name another file, or move it elsewhere")


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


def obey_cluster() -> None:
    """In a job that submitit has started, lets SIGTERM act like Ctrl-C, and lets the work go on after the
    warning before the time limit, unless the job is to be queued again (``hydra.launcher.max_num_timeout``).
    Elsewhere nothing is changed.
    """
    if "SUBMITIT_EXECUTOR" not in os.environ or threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGTERM, _stop)
    number = getattr(signal, f"SIG{os.environ.get('SUBMITIT_PREEMPT_SIGNAL', 'USR2')}", None)
    before = None if number is None else signal.getsignal(number)
    if number is None or not callable(before) or before is _warned.get(number):
        return

    def warned(number: int, frame: FrameType | None) -> None:
        # Queueing the job again ends it by SystemExit; anything else is that it will not be.
        with suppress(Exception):
            before(number, frame)

    _warned[number] = warned
    signal.signal(number, warned)


@contextmanager
def stopping() -> Iterator[None]:
    """Turns termination signals into `Stopped`, raised in the main thread; restores the previous handlers
    afterwards.

    Ignored signals (nohup) stay ignored. Outside the main thread, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked.clear()
    _interrupted.clear()
    if threading.excepthook is not _told_unless_interrupted:
        _usual[:] = [threading.excepthook]
        threading.excepthook = _told_unless_interrupted
    before = {
        number: signal.getsignal(number)
        for number in (getattr(signal, name, None) for name in (*SIGNALS, "SIGINT"))
        if number is not None
    }
    for number, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, _stop)
        elif handler is signal.default_int_handler:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        # A thread may fail some time after an interruption.
        if not _interrupted.is_set():
            threading.excepthook = _usual[0]
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def code_of(error: KeyboardInterrupt) -> int:
    """The exit code after an interruption: 128 + the signal's number."""
    return 128 + (error.number if isinstance(error, Stopped) else int(signal.SIGINT))


def _told_unless_interrupted(about: threading.ExceptHookArgs) -> None:
    """Tells of an error in a thread, but for one of joblib's after an interruption."""
    if type(about.thread).__name__ != MANAGER or not _interrupted.wait(AHEAD):
        _usual[0](about)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _interrupted.set()
    signal.default_int_handler(number, frame)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    # Schedulers often send a signal twice: the second one must not interrupt the clean-up. A later signal is
    # raised again.
    _interrupted.set()
    now = time.monotonic()
    if _asked and now - _asked[-1] < PATIENCE:
        return
    _asked[:] = [now]
    raise Stopped(number)
