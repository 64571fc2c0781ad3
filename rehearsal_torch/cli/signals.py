"""Termination signals: SIGTERM (a cluster, `kill`) and SIGHUP (a closed terminal) act like Ctrl-C.

Files being written are completed or left unchanged, the folder's status is "interrupted", and the exit code
is 128 + the signal's number.

Jobs that submitit starts follow its rules until `obey_cluster` is called: SIGTERM is ignored, so that a job
that a cluster ends is killed in the middle of its work half a minute later; and the warning before the time
limit is answered by an error in the middle of the work, which takes it for one of its own.

The thread by which joblib manages its processes may fail while these are given up; what it then says is no
news to anybody, and is not shown.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

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
