"""Guard of a local web server: it answers pages of its own alone, on this machine alone.

The server listens on a loopback address, so that no other machine reaches it. A page of another site, open in
the same browser, could still send requests to it, or name a host of its own that leads to 127.0.0.1 (DNS
rebinding; Jackson et al., 2007). Every request must therefore name this server as its ``Host``, one with an
``Origin`` (RFC 6454) must come from this server, and a question is JSON of limited size, which no form can
send. Responses tell the browser to load nothing from elsewhere and to be framed nowhere (W3C, CSP Level 3).
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
    """The allowed values of ``Host`` for a port."""
    names = ("127.0.0.1", "localhost", "[::1]")
    return frozenset({f"{name}:{port}" for name in names} | ({*names} if port == 80 else set()))


class Guard:
    """ASGI application that refuses requests from elsewhere, and passes the others on to `app`."""

    def __init__(self, app: App, port: int) -> None:
        self.app, self.hosts = app, authorities(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request (ASGI)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope["method"], scope["headers"])
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        body = b"" if scope["method"] == "GET" else await _read_body(receive)
        if body is None:
            await _refuse(send, 413, f"the question has more than {LARGEST:,} bytes: ask for less at once")
            return
        if _has_lone_surrogate(body):
            problem = "a text of the question holds half of a sign, such as \\ud800 without its other half"
            await _refuse(send, 422, f"{problem}: send whole signs")
            return
        await self.app(scope, _replayed(body, receive), _with_headers(send))

    def refusal(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """The status and the reason for which a request is refused; None if it is not."""
        values: dict[str, list[str]] = {}
        for name, value in headers:
            values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())
        host, origin = values.get("host", []), values.get("origin", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return 403, "this page answers under its own address alone: open the one that the command printed"
        if any(sender.lower() != f"http://{host[0].lower()}" for sender in origin):
            return 403, "the request comes from a page of another site: open the address that was printed"
        if method not in ("GET", "POST"):
            return 405, f"{method} is not answered here: GET a page, or POST a question"
        content_type = values.get("content-type", [""])[0].partition(";")[0].strip().lower()
        if method == "POST" and content_type != "application/json":
            return 415, "a question is JSON: send it with content-type application/json"
        return None


async def _read_body(receive: Receive) -> bytes | None:
    """The body of a request; None if it is too large."""
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


def _has_lone_surrogate(body: bytes) -> bool:
    """Whether JSON holds a lone surrogate, which cannot be written as UTF-8."""
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


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body that was read, then waits for the end of the connection."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send) -> Send:
    async def send_message(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in HEADERS}
            headers = [header for header in message.get("headers", []) if header[0].lower() not in names]
            message = {**message, "headers": [*headers, *HEADERS]}
        await send(message)

    return send_message


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"message": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})
