"""The server of a page: its files, and questions that are answered as JSON.

    GET   /                  the page of the session: its sections in the frame that all pages share
    GET   /page/NAME         scripts and style sheets
    GET   /api/run           what the session describes
    POST  /api/...           the questions of the session (`rehearsal_routes`, `episode_routes`,
                             `trial_routes`)

What cannot be answered comes back as {message}, with a status of 400 or more. FastAPI is used without its
pages of documentation, which load scripts from elsewhere.
"""

import sys
import traceback
from importlib.resources import files
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from rehearsal_torch.explorer.loopback import App, Guard
from rehearsal_torch.explorer.replies import message, told
from rehearsal_torch.reporting.page.stylesheet import CSS

# What all pages share, and what stands in it for what is a page's own.
FRAME, SCRIPT, SECTIONS = "frame.html", "{{script}}", "{{sections}}"
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


class Session(Protocol):
    """What answers: for one kind of problem.

    Attributes:
        page: The file of the sections of its page; the script of the page has the same name.
    """

    page: str

    def describe(self) -> dict[str, Any]:
        """What the page shows before anything is asked."""

    def add_routes(self, app: FastAPI) -> None:
        """Adds its questions to the server."""


def server(session: Session, port: int) -> App:
    """The application, behind its guard.

    Args:
        session: What answers.
        port: The port on which it will be served.
    """
    app = FastAPI(title="rehearsal explore", docs_url=None, redoc_url=None, openapi_url=None)
    _pages(app, session)
    session.add_routes(app)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _not_there)
    app.add_exception_handler(Exception, _fault)
    return Guard(app, port)


def page_file(name: str) -> bytes | None:
    """The content of a file of the page, a page in its frame; None if there is none of that name."""
    if name == "report.css":
        return CSS.encode()
    folder = files(__package__).joinpath("page")
    known = {each.name: each for each in folder.iterdir() if each.name.rpartition(".")[2] in KINDS}
    frame = known.pop(FRAME)
    if name not in known:
        return None
    content = known[name].read_bytes()
    if not name.endswith(".html"):
        return content
    whole = frame.read_text(encoding="utf-8").replace(SCRIPT, f"{name.removesuffix('.html')}.js")
    return whole.replace(SECTIONS, content.decode()).encode()


def _pages(app: FastAPI, session: Session) -> None:
    @app.get("/")
    def first() -> Response:
        return _file(session.page)

    @app.get("/api/run")
    def run() -> Response:
        return told(session.describe)

    @app.get("/page/{name}")
    def file(name: str) -> Response:
        return _file(name)


def _file(name: str) -> Response:
    content = page_file(name)
    if content is None:
        raise HTTPException(404, "there is no such file")
    return Response(content, media_type=KINDS[name.rpartition(".")[2]])


async def _malformed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, RequestValidationError)
    found = [
        f"{'.'.join(map(str, each['loc'][1:])) or 'the question'}: {each['msg']}"
        for each in error.errors()[:5]
    ]
    return message(422, "; ".join(found))


async def _not_there(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    return message(error.status_code, str(error.detail))


async def _fault(request: Request, error: Exception) -> Response:  # noqa: ARG001
    traceback.print_exception(error, file=sys.stderr)
    return message(
        500, f"a fault of this program ({type(error).__name__}); the window of the command says more"
    )
