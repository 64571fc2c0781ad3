"""What the server sends back: an answer as JSON, or the reason for which there is none.

What cannot be answered comes back as {message}, with a status of 400 or more: 422 where the question is at
fault, 409 where another one is still being answered.

One answer at a time: a method draws from torch's random state, and searches want the whole processor.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from fastapi.responses import JSONResponse, Response

from rehearsal_torch.round_line import nulls_for_nan
from rehearsal_torch.user_error import user_error_from

# Seconds for which a question waits for its turn, where answers may take minutes.
PATIENCE = 1.0


class BusyError(Exception):
    """Another question is still being answered."""


class Turns:
    """Lets one question be answered at a time."""

    def __init__(self, patience: float | None = None) -> None:
        self._lock, self._patience = Lock(), -1.0 if patience is None else patience

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The time in which one question is answered."""
        if not self._lock.acquire(timeout=self._patience):
            raise BusyError("another question is still being answered: ask again when it is")
        try:
            yield
        finally:
            self._lock.release()


def reply(answer: Callable[[], Any]) -> Response:
    """An answer, or the reason for which there is none."""
    try:
        content = answer()
    except BusyError as error:
        return message(409, str(error))
    except Exception as error:
        known = user_error_from(error)
        if known is None and not isinstance(error, ValueError):
            raise
        return message(422, str(error if known is None else known))
    return JSONResponse(nulls_for_nan(content))


def message(status: int, text: str) -> Response:
    """The reason for which there is no answer."""
    return JSONResponse({"message": text}, status)
