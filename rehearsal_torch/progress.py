"""One line of progress for what lasts: the phase, how much of it is done, and the time that is left.

On a terminal the line is replaced in place, from five seconds on; elsewhere a plain line is written every 30
seconds, so that a log stays short. Both go to the standard error, which leaves the standard output to the
answers. A thread writes the line, so that it also appears while one long step is under way.

The time left is the time spent on the steps so far, for each step, times the steps that are left. Nothing is
said of it where the number of steps is unknown, or before five steps have ended or a tenth of those that are
left: the first one also holds what is done once, such as starting processes. Of phases inside of each
other, such as the fits of an online run, the outermost writes; one whose steps are phases of their own writes
their lines, with the time of the whole.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

FIRST, REDRAWN, LOGGED = 5.0, 0.5, 30.0
# So many steps are enough to say how long the others take.
ENOUGH = 5
# When a plain line was written last, or a phase first began: phases in a row share the interval.
_written: list[float] = []
# The phases that are under way, the outermost first, which alone writes.
_open: list["Progress"] = []


def duration(seconds: float) -> str:
    """A duration in words: ``40 s``, ``2 min 5 s``, ``1 h 10 min``."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def silent() -> Iterator[None]:
    """Phases inside write nothing, as in a worker, whose work is a step of a phase of another process."""
    outer = Progress("", quiet=True)
    _open.append(outer)
    try:
        yield
    finally:
        _open.remove(outer)


class Progress:
    """A phase of work, to be used in a with statement.

    Args:
        total: The number of steps; None if it is unknown.
        done: The number of steps that were done before, which the estimate of the time left does not count.
        steps: What the steps are called, such as ``epoch``; empty for none.
        at_most: Whether the phase may end before the last step.
        whole: Whether its steps are phases of their own, whose lines are written while one is under way.
        stream: Where to write; None for the standard error.
    """

    def __init__(
        self,
        phase: str,
        total: int | None = None,
        done: int = 0,
        *,
        steps: str = "",
        at_most: bool = False,
        quiet: bool = False,
        whole: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.phase, self.total, self.done, self.steps, self.at_most = phase, total, done, steps, at_most
        self.quiet, self.whole, self.clock, self.note = quiet, whole, clock, ""
        self.stream = sys.stderr if stream is None else stream
        self._before, self._began, self._shown = done, clock(), 0
        self._ended, self._turn = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def at(self, done: int, note: str = "") -> None:
        """Notes how many steps are done, and what else there is to say."""
        self.done, self.note = done, note

    def begin(self, done: int) -> None:
        """Counts steps that were done before, from which nothing is learnt about the time that is left."""
        self.done = self._before = done

    def line(self) -> str:
        """The line at this moment."""
        spent = self.clock() - self._began
        place = f"{self.done} of {self.total}" if self.total is not None else ""
        parts = [f"{self.phase}: " + " ".join(part for part in (self.steps, place) if part)]
        parts = [self.phase] if parts[0].endswith(": ") else parts
        new = self.done - self._before
        if self.total is not None and new > 0 and (new >= ENOUGH or 10 * new >= self.total - self.done):
            left = duration(spent / new * max(self.total - self.done, 0))
            parts.append(f"{'at most' if self.at_most else 'about'} {left} left")
        else:
            parts.append(f"{duration(spent)} so far")
        return ", ".join(parts) + (f"; {self.note}" if self.note else "")

    def shown(self) -> str:
        """What is written at this moment: the line, or the innermost phase's with the time of the whole."""
        inner = _open[-1] if self.whole and _open else self
        return (
            self.line() if inner is self else f"{inner.line()}; {duration(self.clock() - self._began)} in all"
        )

    def __enter__(self) -> "Progress":
        self._began = self.clock()
        if not _written:
            _written.append(self._began)
        if self.quiet:
            return self
        _open.append(self)
        if len(_open) == 1:
            self._thread = threading.Thread(target=self._write, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self in _open:
            _open.remove(self)
        if self._thread is not None:
            self._thread.join()
        self._clear()

    def aside(self, text: str) -> None:
        """Prints a line to the standard output, above the line of progress."""
        with self._turn:
            self._clear()
            print(text, flush=True)

    def _write(self) -> None:
        terminal = self.stream.isatty()
        while not self._ended.wait(REDRAWN):
            now = self.clock()
            with self._turn:
                if terminal and now - self._began >= FIRST:
                    self._redraw()
                elif not terminal and now - _written[0] >= LOGGED:
                    _written[0] = now
                    self._put(f"{self.shown()}\n")

    def _redraw(self) -> None:
        """Replaces the line, cut to the width of the terminal."""
        text = self.shown()[: shutil.get_terminal_size().columns - 1]
        self._put("\r" + text.ljust(self._shown))
        self._shown = len(text)

    def _clear(self) -> None:
        """Blanks the line on a terminal."""
        if self._shown:
            self._put("\r" + " " * self._shown + "\r")
            self._shown = 0

    def _put(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            # Nobody reads any more: the work goes on.
            self._ended.set()
