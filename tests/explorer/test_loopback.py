"""Who may ask: requests of other hosts and other pages are refused, and so are large ones."""

import asyncio
import json
import socket

import pytest

from rehearsal_torch.explorer.loopback import LARGEST, Guard, listening
from rehearsal_torch.user_error import UserError

OWN = [(b"host", b"127.0.0.1:8000")]
JSON = (b"content-type", b"application/json; charset=utf-8")


async def echo(scope, receive, send):
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"public")]})
    await send({"type": "http.response.body", "body": body})


def answered(headers, method="GET", parts=(b"",)):
    """Status, headers and body of a request whose body comes in parts."""
    sent, waiting = [], [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting[-1]["more_body"] = False

    async def receive():
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "headers": headers, "path": "/"}
    asyncio.run(Guard(echo, 8000)(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.mark.parametrize("host", [b"127.0.0.1:8000", b"localhost:8000", b"LocalHost:8000", b"[::1]:8000"])
def test_this_machine_may_ask(host):
    assert answered([(b"host", host), (b"origin", b"http://" + host.lower())])[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"evil.example:8000")],
        [(b"host", b"127.0.0.1:8001")],
        [(b"host", b"127.0.0.1")],
        [(b"host", b"127.0.0.1:8000.evil.example")],
        [*OWN, *OWN],
        [*OWN, (b"origin", b"http://evil.example")],
        [*OWN, (b"origin", b"null")],
        [*OWN, (b"origin", b"https://127.0.0.1:8000")],
        [*OWN, (b"origin", b"http://localhost:8000")],
        [*OWN, (b"origin", b"http://127.0.0.1:8000"), (b"origin", b"http://evil.example")],
    ],
)
def test_other_hosts_and_other_pages_may_not(headers):
    status, _, body = answered(headers)
    assert status == 403
    assert set(json.loads(body)) == {"message"}


def test_the_port_is_left_out_where_it_is_the_usual_one():
    assert Guard(echo, 80).refusal("GET", [(b"host", b"localhost")]) is None


@pytest.mark.parametrize("kind", [b"text/plain", b"application/x-www-form-urlencoded", b"application/jsonp"])
def test_a_question_is_json(kind):
    assert answered([*OWN, (b"content-type", kind)], "POST")[0] == 415
    assert answered(OWN, "POST")[0] == 415
    assert answered([*OWN, JSON], "POST", [b"{", b"}"])[::2] == (200, b"{}")


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_else_is_answered(method):
    assert answered(OWN, method)[0] == 405


def test_a_question_has_a_limited_size():
    half = b" " * (LARGEST // 2)
    assert answered([*OWN, JSON], "POST", [half, half])[0] == 200
    status, _, body = answered([*OWN, JSON], "POST", [half, half, b" "])
    assert status == 413
    assert "65,536 bytes" in json.loads(body)["message"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (r'{"given": {"\ud800": 1}}', 422),
        (r'{"given": {"\uDC00x": 1}}', 422),
        (r'["\ude00\ud83d"]', 422),
        (r'{"given": {"\ud83d\ude00": 1}}', 200),
        (r'{"given": {"\\ud800": 1}}', 200),
        (r'{"\ud800', 200),
        ("[" * 20_000 + r'"\ud800"', 200),
    ],
)
def test_half_of_a_sign_is_no_text(text, status):
    found, _, body = answered([*OWN, JSON], "POST", [text.encode()])
    assert found == status
    if status == 422:
        assert "holds half of a sign" in json.loads(body)["message"]


def test_every_answer_tells_the_browser_to_load_nothing_from_elsewhere():
    for headers in (OWN, [], [*OWN, (b"origin", b"null")]):
        found = answered(headers)[1]
        assert found[b"content-security-policy"].startswith(b"default-src 'self'; script-src 'self'")
        assert b"frame-ancestors 'none'" in found[b"content-security-policy"]
        assert found[b"x-content-type-options"] == b"nosniff"
        assert found[b"cache-control"] == b"no-store"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])
def test_other_addresses_are_not_served(host):
    with pytest.raises(UserError, match="the page is for this machine alone"):
        listening(host, 0)


def test_a_free_port_is_found_and_a_taken_one_is_named():
    one = listening("localhost", 0)
    try:
        address, port = one.getsockname()
        assert address == "127.0.0.1"
        assert port > 0
        with pytest.raises(UserError, match=rf"port={port}: cannot be listened on"):
            listening("127.0.0.1", port)
        with socket.create_connection((address, port), 5):
            pass
    finally:
        one.close()
