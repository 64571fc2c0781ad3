"""Who may ask: pages of this server alone, from this machine alone.

The server listens on a loopback address, so that no other machine reaches it. A page of another site, open
in the same browser, could still send requests to it, or name a host of its own that leads to 127.0.0.1 (DNS
rebinding). Every request must therefore name this server as its ``Host``, one with an ``Origin`` must come
from this server, and what changes hands is JSON of limited size, which no form can send. Answers tell the
browser to load nothing from elsewhere and to be framed nowhere.

Source: W3C, Content Security Policy Level 3; Jackson et al. (2007) (DNS rebinding; checks of the host); RFC
6454 (origins).
"""

import json
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from rehearsal_torch.user_error import UserError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = ("127.0.0.1", "localhost", "::1")
# Bytes of a question: a thousand variables with long names.
LARGEST = 2**16
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on a loopback address."""
    if host not in HOSTS:
        raise UserError(
            "the page is for this machine alone and has no password: no other address is served",
            f"host={host}",
            f"Leave it out, or choose from {', '.join(HOSTS)}; from elsewhere, forward the port through ssh",
        )
    family = socket.AF_INET6 if host == "::1" else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1" if host == "localhost" else host, port))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise UserError(
            f"cannot be listened on ({error.strerror})", f"port={port}", "Leave port= out to take a free one"
        ) from None
    return listener


def authorities(port: int) -> frozenset[str]:
    """What the ``Host`` of a request may be, for a port."""
    names = ("127.0.0.1", "localhost", "[::1]")
    return frozenset({f"{name}:{port}" for name in names} | ({*names} if port == 80 else set()))


class Guard:
    """Refuses every request that does not come from a page of this server, and limits the others."""

    def __init__(self, app: App, port: int) -> None:
        self.app, self.hosts = app, authorities(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request (ASGI)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope["method"], scope["headers"])
        if refusal is not None:
            await _answer(send, *refusal)
            return
        body = b"" if scope["method"] == "GET" else await _body(receive)
        if body is None:
            await _answer(send, 413, f"the question has more than {LARGEST:,} bytes: ask for less at once")
            return
        if _halved(body):
            what = "a text of the question holds half of a sign, such as \\ud800 without its other half"
            await _answer(send, 422, f"{what}: send whole signs")
            return
        await self.app(scope, _once(body, receive), _with_headers(send))

    def refusal(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """The status and the reason for which a request is refused; None if it is not."""
        given: dict[str, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())
        host, origin = given.get("host", []), given.get("origin", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return 403, "this page answers under its own address alone: open the one that the command printed"
        if any(origin_given.lower() != f"http://{host[0].lower()}" for origin_given in origin):
            return 403, "the request comes from a page of another site: open the address that was printed"
        if method not in ("GET", "POST"):
            return 405, f"{method} is not answered here: GET a page, or POST a question"
        kind = given.get("content-type", [""])[0].partition(";")[0].strip().lower()
        if method == "POST" and kind != "application/json":
            return 415, "a question is JSON: send it with content-type application/json"
        return None


async def _body(receive: Receive) -> bytes | None:
    """The whole body of a request; None if it is too large."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        if len(body) > LARGEST:
            return None
        if not message.get("more_body", False):
            return body


def _halved(body: bytes) -> bool:
    """Whether a text in JSON cannot be written as UTF-8: an escaped half of a surrogate pair stands alone."""
    if b"\\ud" not in body.lower():
        return False
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        # No JSON: the server says so.
        return False
    return False


def _once(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, then waits for the end of the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def other(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in HEADERS}
            kept = [header for header in message.get("headers", []) if header[0].lower() not in own]
            message = {**message, "headers": [*kept, *HEADERS]}
        await send(message)

    return other


async def _answer(send: Send, status: int, text: str) -> None:
    content = json.dumps({"message": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": content})
