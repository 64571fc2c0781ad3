"""HTTP server of an explorer page: the page of a session, and its questions, answered by parts of the page.

    GET   /, /page/NAME      the page of the session; script and style sheets
    POST  /api/NAME          a question (`rehearsal_session`, `episode_session`, `trial_session`), as JSON

An answer is HTML: the parts of the page that show it, blocks of its template, in which whatever comes from
data is escaped. An error is {message} with a status of 400 or more: 422 where the question is at fault, 409
while another one is being answered. One answer at a time: a method draws from torch's random state, and
searches want the whole processor. FastAPI is used without its pages of documentation, which load scripts from
elsewhere.
"""

import socket
import sys
import traceback
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any, NamedTuple, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from uvicorn import Config, Server

from rehearsal_torch.data.estimate import percent
from rehearsal_torch.explorer.loopback import App, Guard
from rehearsal_torch.reporting.page.html import CSS
from rehearsal_torch.reporting.page.page_content import counted, shown
from rehearsal_torch.reporting.page.sentences import settings
from rehearsal_torch.user_error import user_error_from

KINDS = {"js": "text/javascript", "css": "text/css"}
TEMPLATES = Environment(
    loader=PackageLoader(__package__, "page"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
TEMPLATES.filters |= {
    "shown": shown,
    "counted": counted,
    "percent": percent,
    "settings": settings,
    "literal": repr,
    "sentence": lambda text: f"{capital(text).rstrip('.')}.",
}


def capital(text: str) -> str:
    """The text with an initial capital."""
    return f"{text[:1].upper()}{text[1:]}"


TEMPLATES.globals["macros"] = TEMPLATES.get_template("macros.html").module


class Asked(BaseModel):
    """The body of a question: what a form of the page holds."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Question(NamedTuple):
    """A question: the type of its body, what answers it, and the blocks of the page that show the answer."""

    body: type[Asked]
    answer: Callable[[Any], Mapping[str, Any]]
    parts: tuple[str, ...]


Questions = Mapping[str, Question]
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
        """Holds the lock while one question is answered."""
        if not self._lock.acquire(timeout=self._patience):
            raise BusyError("another question is still being answered: ask again when it is")
        try:
            yield
        finally:
            self._lock.release()


def reply(answer: Callable[[], str]) -> Response:
    """HTML as a response; an error message where a user error or a ValueError is raised."""
    try:
        content = answer()
    except BusyError as error:
        return message(409, str(error))
    except Exception as error:
        user_error = user_error_from(error)
        if user_error is None and not isinstance(error, ValueError):
            raise
        return message(422, str(error if user_error is None else user_error))
    return HTMLResponse(content.encode("utf-8", "replace"))


def message(status: int, text: str) -> Response:
    """An error response."""
    return JSONResponse({"message": text}, status)


class Session(Protocol):
    """Answers the questions of a page; `page` is the template of the page."""

    page: str

    def describe(self) -> Mapping[str, Any]:
        """What all parts of the page use."""

    def opening(self) -> Mapping[str, Any]:
        """What the page shows before anything is asked."""

    def questions(self) -> Questions:
        """Its questions, by name."""


def server(session: Session, port: int) -> App:
    """The ASGI application of a session, behind its `Guard`."""
    app = FastAPI(title="rehearsal explore", docs_url=None, redoc_url=None, openapi_url=None)
    template, described = TEMPLATES.get_template(session.page), cache(lambda: dict(session.describe()))

    def add_question(name: str, question: Question) -> None:
        def parts(body: Any) -> str:
            context = template.new_context({**described(), **question.answer(body)})
            return "".join(chunk for part in question.parts for chunk in template.blocks[part](context))

        def answer(body: Any) -> Response:
            return reply(lambda: parts(body))

        # FastAPI reads from the annotation what a question is to hold.
        answer.__annotations__["body"] = question.body
        app.post(f"/api/{name}")(answer)

    app.get("/")(lambda: reply(lambda: template.render({**described(), **session.opening()})))
    app.get("/page/{name}")(_file_response)
    for name, question in session.questions().items():
        add_question(name, question)
    app.add_exception_handler(RequestValidationError, _invalid_question)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)
    return Guard(app, port)


def page_file(name: str) -> bytes | None:
    """A script or style sheet; None if there is none of that name."""
    if name == "report.css":
        return CSS.encode()
    served = {
        file.name: file for file in files(__package__).joinpath("page").iterdir() if _kind(file.name) in KINDS
    }
    return served[name].read_bytes() if name in served else None


def _kind(name: str) -> str:
    return name.rpartition(".")[2]


def _file_response(name: str) -> Response:
    content = page_file(name)
    if content is None:
        raise HTTPException(404, "there is no such file")
    return Response(content, media_type=KINDS[_kind(name)])


async def _invalid_question(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, RequestValidationError)
    problems = [
        f"{'.'.join(map(str, problem['loc'][1:])) or 'the question'}: {problem['msg']}"
        for problem in error.errors()[:5]
    ]
    return message(422, "; ".join(problems))


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    return message(error.status_code, str(error.detail))


async def _internal_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    traceback.print_exception(error, file=sys.stderr)
    fault = f"a fault of this program ({type(error).__name__})"
    return message(500, f"{fault}; the window of the command says more")


MOST = 64  # Connections that are answered at once.


def serve(session: Session, listener: socket.socket, host: str, browser: bool) -> None:
    """Serves until it is interrupted, and prints the address once it answers."""
    port = int(listener.getsockname()[1])
    address = f"http://{'[::1]' if host == '::1' else host}:{port}/"

    class Announced(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print(f"The page is at {address}\nIt answers this machine alone; Ctrl-C ends it.", flush=True)
            if browser and not webbrowser.open(address):
                print("No browser was found: open the address yourself.", flush=True)

    Announced(configured(session, port)).run(sockets=[listener])


def configured(session: Session, port: int) -> Config:
    """uvicorn's settings for the server of a session."""
    return Config(
        server(session, port),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=MOST,
        server_header=False,
    )
