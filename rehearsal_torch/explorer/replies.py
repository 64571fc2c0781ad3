"""What the server sends back: an answer as JSON, or the reason for which there is none.

What cannot be answered comes back as {message}, with a status of 400 or more: 422 where the question is at
fault, 409 where another one is still being answered.
"""

from collections.abc import Callable
from typing import Any

from fastapi.responses import JSONResponse, Response

from rehearsal_torch.cli.errors import user_error_from
from rehearsal_torch.explorer.turns import BusyError
from rehearsal_torch.round_line import nulls_for_nan


def told(answer: Callable[[], Any]) -> Response:
    """An answer, or the reason for which there is none.

    Args:
        answer: Returns plain data; what it raises for a question that cannot be answered becomes a message.
    """
    try:
        found = answer()
    except BusyError as error:
        return message(409, str(error))
    except Exception as error:
        known = user_error_from(error)
        if known is None and not isinstance(error, ValueError):
            raise
        return message(422, str(error if known is None else known))
    return JSONResponse(nulls_for_nan(found))


def message(status: int, text: str) -> Response:
    """The reason for which there is no answer."""
    return JSONResponse({"message": text}, status)
