"""The server of the page: its files, and questions that are answered as JSON.

    GET   /                  the page
    GET   /page/NAME         its scripts and style sheets
    GET   /api/run           what the session describes
    POST  /api/what-if       {case, given, set}: the claim of a setting
    POST  /api/charts        {case, given, set}: curves, and outcomes beside the region
    POST  /api/recommend     {case, given}: the method's decision

What cannot be answered comes back as {message}, with a status of 400 or more. FastAPI is used without its
pages of documentation, which load scripts from elsewhere.
"""

import sys
import traceback
from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from starlette.exceptions import HTTPException

from rehearsal_torch.cli.errors import user_error_from
from rehearsal_torch.explorer.loopback import App, Guard
from rehearsal_torch.reporting.page.stylesheet import CSS
from rehearsal_torch.round_line import nulls_for_nan

KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
MOST = 1000
Numbers = Annotated[dict[str, FiniteFloat], Field(max_length=MOST)]


class Session(Protocol):
    """What answers."""

    def describe(self) -> dict[str, Any]:
        """See `RehearsalSession.describe`."""

    def what_if(self, case: int | None, given: Any, setting: Any) -> Any:
        """See `RehearsalSession.what_if`."""

    def charts(self, case: int | None, given: Any, setting: Any) -> Any:
        """See `RehearsalSession.charts`."""

    def recommend(self, case: int | None, given: Any) -> Any:
        """See `RehearsalSession.recommend`."""


class CaseAsked(BaseModel):
    """A question about a case.

    Attributes:
        case: The number of a recorded case, whose own bounds apply; None for the task's.
        given: The context, name to number.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    case: int | None = None
    given: Numbers


class SettingAsked(CaseAsked):
    """A question about a setting in a case.

    Attributes:
        set: Name to number.
    """

    set: Numbers


def server(session: Session, port: int) -> App:
    """The application, behind its guard.

    Args:
        session: What answers.
        port: The port on which it will be served.
    """
    app = FastAPI(title="rehearsal explore", docs_url=None, redoc_url=None, openapi_url=None)
    _pages(app)
    _questions(app, session)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _not_there)
    app.add_exception_handler(Exception, _fault)
    return Guard(app, port)


def page_file(name: str) -> bytes | None:
    """The content of a file of the page; None if there is none of that name."""
    if name == "report.css":
        return CSS.encode()
    folder = files(__package__).joinpath("page")
    known = {each.name: each for each in folder.iterdir() if each.name.rpartition(".")[2] in KINDS}
    return known[name].read_bytes() if name in known else None


def _pages(app: FastAPI) -> None:
    @app.get("/")
    def first() -> Response:
        return _file("explorer.html")

    @app.get("/page/{name}")
    def file(name: str) -> Response:
        return _file(name)


def _file(name: str) -> Response:
    content = page_file(name)
    if content is None:
        raise HTTPException(404, "there is no such file")
    return Response(content, media_type=KINDS[name.rpartition(".")[2]])


def _questions(app: FastAPI, session: Session) -> None:
    @app.get("/api/run")
    def run() -> Response:
        return _told(session.describe)

    @app.post("/api/what-if")
    def what_if(asked: SettingAsked) -> Response:
        return _told(lambda: session.what_if(asked.case, asked.given, asked.set))

    @app.post("/api/charts")
    def charts(asked: SettingAsked) -> Response:
        return _told(lambda: session.charts(asked.case, asked.given, asked.set))

    @app.post("/api/recommend")
    def recommend(asked: CaseAsked) -> Response:
        return _told(lambda: session.recommend(asked.case, asked.given))


def _told(answer: Callable[[], Any]) -> Response:
    """An answer, or the reason for which there is none."""
    try:
        found = answer()
    except Exception as error:
        known = user_error_from(error)
        if known is None and not isinstance(error, ValueError):
            raise
        return _message(422, str(error if known is None else known))
    return JSONResponse(nulls_for_nan(found))


def _message(status: int, text: str) -> Response:
    return JSONResponse({"message": text}, status)


async def _malformed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, RequestValidationError)
    found = [
        f"{'.'.join(map(str, each['loc'][1:])) or 'the question'}: {each['msg']}"
        for each in error.errors()[:5]
    ]
    return _message(422, "; ".join(found))


async def _not_there(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    return _message(error.status_code, str(error.detail))


async def _fault(request: Request, error: Exception) -> Response:  # noqa: ARG001
    traceback.print_exception(error, file=sys.stderr)
    return _message(
        500, f"a fault of this program ({type(error).__name__}); the window of the command says more"
    )
