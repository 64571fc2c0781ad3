"""One answer at a time: a method draws from torch's random state, and searches want the whole processor."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# Seconds for which a question waits for its turn, where answers may take minutes.
PATIENCE = 1.0


class BusyError(Exception):
    """Another question is still being answered."""


class Turns:
    """Lets one question be answered at a time.

    Args:
        patience: Seconds after which a question that waits is turned away; None waits until it is its turn.
    """

    def __init__(self, patience: float | None = None) -> None:
        self._lock, self._patience = Lock(), -1.0 if patience is None else patience

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The time in which one question is answered.

        Raises:
            BusyError: if the question before is not answered in time.
        """
        if not self._lock.acquire(timeout=self._patience):
            raise BusyError("another question is still being answered: ask again when it is")
        try:
            yield
        finally:
            self._lock.release()
