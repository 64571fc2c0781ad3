"""Connections over real sockets that do not send what they began: they end, and others are answered."""

import socket
import time

import pytest

from rehearsal_torch.explorer import serving
from rehearsal_torch.explorer.recorded_model import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from tests.toys.explored import run_folder
from tests.toys.served import Served

LIMIT = 0.2


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return RehearsalSession(opened(run_folder(tmp_path_factory.mktemp("runs") / "run")))


@pytest.fixture
def served(session, monkeypatch):
    monkeypatch.setattr(serving, "ARRIVAL", LIMIT)
    found = Served(session)
    yield found
    found.end()


def connected(served, sent):
    found = socket.create_connection(("127.0.0.1", served.port), 10)
    found.sendall(sent)
    return found


def until_closed(connection, every=()):
    """What a connection receives until the other side has ended it, and in how many seconds; `every` is sent
    to it meanwhile, a piece each twentieth of a second.
    """
    begun, got, pieces = time.monotonic(), b"", list(every)
    connection.settimeout(0.05)
    while True:
        try:
            found = connection.recv(65536)
        except TimeoutError:
            if pieces:
                connection.sendall(pieces.pop(0))
            assert time.monotonic() - begun < 20, "the connection stays open"
            continue
        except ConnectionError:
            found = b""
        if not found:
            return got, time.monotonic() - begun
        got += found


def head(served, first, *lines):
    return "\r\n".join([first, f"Host: 127.0.0.1:{served.port}", *lines, ""]).encode()


def test_half_requests_keep_nobody_out_for_long(served):
    half = [connected(served, b"GET / HTTP/1.1\r\nHost: 127") for _ in range(serving.MOST)]
    try:
        time.sleep(0.05)
        assert served.ask("/api/run")[0] == 503
        for each in half:
            assert until_closed(each)[0] == b""
        assert served.ask("/api/run")[0] == 200
    finally:
        for each in half:
            each.close()


@pytest.mark.parametrize(
    "begun",
    [
        (),
        ("GET / HTTP/1.1", "X-Slow: 1"),
        ("POST /api/what-if HTTP/1.1", "Content-Type: application/json", "Content-Length: 10", ""),
    ],
    ids=["nothing", "headers", "body"],
)
def test_a_trickle_does_not_extend_the_time(served, begun):
    with connected(served, head(served, *begun) if begun else b"") as one:
        _, took = until_closed(one, [b"a"] * 9 if begun else [])
    assert took < 10 * LIMIT


def test_a_body_that_is_never_read_does_not_keep_its_connection(served):
    sent = head(served, "GET /page/chart.js HTTP/1.1", "Content-Length: 10") + b"\r\n"
    with connected(served, sent) as one:
        got, took = until_closed(one, [b"a"] * 9)
    assert got.startswith(b"HTTP/1.1 200")
    assert took < 10 * LIMIT


def test_whole_requests_are_answered_on_one_connection(served):
    asked = head(served, "GET /page/chart.js HTTP/1.1") + b"\r\n"
    with connected(served, asked) as one:
        one.settimeout(10)
        for _ in range(2):
            got = b""
            while not got.endswith(b"\n}\n"):
                got += one.recv(65536)
            assert got.startswith(b"HTTP/1.1 200")
            time.sleep(0.7 * LIMIT)
            one.sendall(asked)


def test_an_answer_may_take_longer_than_a_request(served, session, monkeypatch):
    monkeypatch.setattr(session, "describe", lambda: time.sleep(2 * LIMIT) or {"title": "slow"})
    assert served.ask("/api/run")[2] == {"title": "slow"}
