"""A line of progress for long computations: the phase, the steps done, and an estimate of the time left.

On a terminal the line is replaced in place, from five seconds on; elsewhere a plain line is written every 30
seconds, so that a log stays short. Both go to the standard error, which leaves the standard output to the
answers. A thread writes the line, so that it also appears during one long step.

The time left is the steps left times the mean time of the later half of those that have ended, as the first
ones include the start of processes; it is omitted until five have ended, or a tenth of those left. Who can
foretell it says so instead (`Progress.expect`). Of nested phases, such as the fits of an online run, the
outermost writes: its own line, or, with `whole`, theirs with the total time.
"""

import shutil
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import TextIO

# Seconds before the first line on a terminal, between its updates, and between plain lines.
FIRST, REDRAWN, LOGGED = 5.0, 0.5, 30.0
# Steps after which the time left is estimated.
ENOUGH = 5
# When a plain line was written last, or the first phase began: successive phases share the interval.
_last_line: list[float] = []
# The phases in progress, the outermost first, which alone writes.
_phases: list["Progress"] = []


def duration(seconds: float) -> str:
    """A duration in words: ``40 s``, ``2 min 5 s``, ``1 h 10 min``."""
    rounded = max(round(seconds), 0)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


@contextmanager
def silent() -> Iterator[None]:
    """Suppresses the phases within, as in a worker, whose work is a step of another process's phase."""
    phase = Progress("", quiet=True)
    _phases.append(phase)
    try:
        yield
    finally:
        _phases.remove(phase)


class Progress:
    """A phase of work, to be used in a with statement.

    Args:
        total: The number of steps; None if it is unknown.
        done: The number of steps done before, which the estimate of the time left does not count.
        steps: The name of a step, such as ``epoch``; empty for none.
        at_most: Whether the phase may end before the last step.
        whole: Whether its steps are phases of their own, whose lines are then written.
        stream: None for the standard error.
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
        # When how many steps had ended.
        self._ends = [(self._began, done)]
        self._due: float | None = None
        self._ended, self._turn = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def at(self, done: int, note: str = "") -> None:
        """Sets the number of steps done, and a note for the end of the line."""
        self.done, self.note = done, note
        self._ends.append((self.clock(), done))

    def expect(self, seconds: float) -> None:
        """Sets the time left, in place of the mean time per step times the steps left."""
        self._due = self.clock() + seconds

    def begin(self, done: int) -> None:
        """Sets the number of steps done before, which the estimate of the time left does not count."""
        self.done = self._before = done
        self._ends = [(self._began, done)]

    def line(self) -> str:
        """The phase's current line."""
        elapsed = self.clock() - self._began
        count = f"{self.done} of {self.total}" if self.total is not None else ""
        parts = [f"{self.phase}: " + " ".join(part for part in (self.steps, count) if part)]
        parts = [self.phase] if parts[0].endswith(": ") else parts
        new = self.done - self._before
        if self._due is not None and self._due > self.clock():
            parts.append(f"about {duration(self._due - self.clock())} left")
        elif (
            self._due is None
            and self.total is not None
            and new > 0
            and (new >= ENOUGH or 10 * new >= self.total - self.done)
        ):
            ends = list(self._ends)
            half = bisect_right(ends, self._before + new / 2, hi=len(ends) - 1, key=itemgetter(1))
            (since, earlier), (last, done) = ends[max(half - 1, 0)], ends[-1]
            pace = (last - since) / max(done - earlier, 1)
            left = pace * max(self.total - done, 0) - (self.clock() - last)
            parts.append(f"{'at most' if self.at_most else 'about'} {duration(left)} left")
        else:
            parts.append(f"{duration(elapsed)} so far")
        return ", ".join(parts) + (f"; {self.note}" if self.note else "")

    def shown(self) -> str:
        """The text that is written: the line, or the innermost phase's with the total time."""
        inner = _phases[-1] if self.whole and _phases else self
        total = "" if inner is self else f"; {duration(self.clock() - self._began)} in all"
        return inner.line() + total

    def __enter__(self) -> "Progress":
        self._began = self.clock()
        self._ends = [(self._began, self._before)]
        if not _last_line:
            _last_line.append(self._began)
        if self.quiet:
            return self
        _phases.append(self)
        if len(_phases) == 1:
            self._thread = threading.Thread(target=self._write, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self in _phases:
            _phases.remove(self)
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
                elif not terminal and now - _last_line[0] >= LOGGED:
                    _last_line[0] = now
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
            # Nobody reads the line any more: the computation continues.
            self._ended.set()
