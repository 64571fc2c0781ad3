"""Being asked to end: SIGTERM (a cluster, `kill`) and SIGHUP (a closed terminal) end a command as Ctrl-C
does.

What is being written is finished or left as it was, the folder says "interrupted", and the exit code is 128 +
the signal's number.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = ("SIGTERM", "SIGHUP")
# Seconds in which a second signal counts as the first.
PATIENCE = 5.0
_asked: list[float] = []


class Stopped(KeyboardInterrupt):
    """A signal that asks the process to end.

    Args:
        number: The signal.
    """

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = int(number)

    def __str__(self) -> str:
        return signal.Signals(self.number).name


@contextmanager
def stopping() -> Iterator[None]:
    """Turns the signals that ask a process to end into `Stopped`, raised where the process is; earlier
    handlers come back afterwards.

    A signal that is ignored (nohup) stays ignored. Outside the main thread nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked.clear()
    before = {
        number: signal.getsignal(number)
        for number in (getattr(signal, name, None) for name in (*SIGNALS, "SIGINT"))
        if number is not None
    }
    for number, handler in before.items():
        if handler == signal.SIG_DFL:
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def code_of(error: KeyboardInterrupt) -> int:
    """The exit code after an interruption: 128 + the signal's number."""
    return 128 + (error.number if isinstance(error, Stopped) else int(signal.SIGINT))


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    # Schedulers often ask twice at once: that must not break into the tidying up. Asked again later, it is
    # raised again.
    now = time.monotonic()
    if _asked and now - _asked[-1] < PATIENCE:
        return
    _asked[:] = [now]
    raise Stopped(number)
