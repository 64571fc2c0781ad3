"""HTTP server of an explorer page: its files, and the questions of a session, answered as JSON.

    GET   /, /page/NAME      the sections of the session in the frame of all pages; scripts and style sheets
    GET   /api/run           what the session describes
    POST  /api/...           its questions (`rehearsal_session`, `episode_session`, `trial_session`)

An error is {message} with a status of 400 or more: 422 where the question is at fault, 409 while another one
is being answered. One answer at a time: a method draws from torch's random state, and searches want the whole
processor. FastAPI is used without its pages of documentation, which load scripts from elsewhere.

uvicorn waits without end for the rest of a request, so that `MOST` connections with half a request each would
keep everybody else out. A request, headers and body, therefore has `ARRIVAL` seconds from the opening of its
connection, or from its first byte on one that is reused; then the connection is closed (CWE-400, uncontrolled
resource consumption: "slowloris").
"""

import socket
import sys
import traceback
import webbrowser
from asyncio import TimerHandle, Transport
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from threading import Lock
from typing import Any, Protocol

import h11
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from rehearsal_torch.explorer.loopback import App, Guard
from rehearsal_torch.reporting.page.html import CSS
from rehearsal_torch.round_record import nulls_for_nan
from rehearsal_torch.user_error import user_error_from

# The frame of all pages, and its placeholders.
FRAME, SCRIPT, SECTIONS = "frame.html", "{{script}}", "{{sections}}"
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


class Asked(BaseModel):
    """The body of a question; its fields, in their order, are the arguments of the method that answers it."""

    model_config = ConfigDict(extra="forbid", strict=True)


# Path below /api/ to the type of the question's body, None for a GET, and the method that answers it.
Questions = Mapping[str, tuple[type[Asked] | None, Callable[..., Any]]]
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


def reply(answer: Callable[[], Any]) -> Response:
    """The answer as a response; an error message where a user error or a ValueError is raised."""
    try:
        content = answer()
    except BusyError as error:
        return message(409, str(error))
    except Exception as error:
        user_error = user_error_from(error)
        if user_error is None and not isinstance(error, ValueError):
            raise
        return message(422, str(error if user_error is None else user_error))
    return JSONResponse(nulls_for_nan(content))


def message(status: int, text: str) -> Response:
    """An error response."""
    return JSONResponse({"message": text}, status)


class Session(Protocol):
    """Answers the questions of a page; `page` is the file of its sections, whose script has the same name."""

    page: str

    def describe(self) -> dict[str, Any]:
        """What the page shows before anything is asked."""

    def questions(self) -> Questions:
        """Its questions."""


def server(session: Session, port: int) -> App:
    """The ASGI application of a session, behind its `Guard`."""
    app = FastAPI(title="rehearsal explore", docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/")(lambda: _file_response(session.page))
    app.get("/page/{name}")(_file_response)
    for path, (body, answer) in {"run": (None, lambda: session.describe()), **session.questions()}.items():
        _add_route(app, f"/api/{path}", body, answer)
    app.add_exception_handler(RequestValidationError, _invalid_question)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)
    return Guard(app, port)


def _add_route(app: FastAPI, path: str, body: type[Asked] | None, answer: Callable[..., Any]) -> None:
    if body is None:
        app.get(path)(lambda: reply(answer))
        return

    def answer_post(question: Any) -> Response:
        return reply(lambda: answer(*(getattr(question, name) for name in type(question).model_fields)))

    # FastAPI reads from the annotation what a question is to hold.
    answer_post.__annotations__["question"] = body
    app.post(path)(answer_post)


def page_file(name: str) -> bytes | None:
    """The content of a file of the page, sections in their frame; None if there is none of that name."""
    if name == "report.css":
        return CSS.encode()
    folder = files(__package__).joinpath("page")
    pages = {file.name: file for file in folder.iterdir() if file.name.rpartition(".")[2] in KINDS}
    frame = pages.pop(FRAME)
    if name not in pages:
        return None
    content = pages[name].read_bytes()
    if not name.endswith(".html"):
        return content
    document = frame.read_text(encoding="utf-8").replace(SCRIPT, f"{name.removesuffix('.html')}.js")
    return document.replace(SECTIONS, content.decode()).encode()


def _file_response(name: str) -> Response:
    content = page_file(name)
    if content is None:
        raise HTTPException(404, "there is no such file")
    return Response(content, media_type=KINDS[name.rpartition(".")[2]])


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


# Seconds for a whole request, at most 64 KiB from this machine; and connections that are answered at once.
ARRIVAL, MOST = 5.0, 64


class TimedProtocol(H11Protocol):
    """A connection whose requests arrive within `ARRIVAL` seconds, or that is closed."""

    _limit: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Starts the timer of the first request."""
        super().connection_made(transport)
        self._update_timer()

    def data_received(self, data: bytes) -> None:
        """Stops the timer of a complete request, and starts that of the next one."""
        super().data_received(data)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def _update_timer(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_timer()
        elif self._limit is None:
            self._limit = self.loop.call_later(ARRIVAL, self.transport.close)

    def _stop_timer(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None


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
        http=TimedProtocol,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=MOST,
        server_header=False,
    )
