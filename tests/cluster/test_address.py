"""Addresses of schedulers, and whether one listens there."""

import socket
import threading
import time

import pytest

from rehearsal_torch.cluster import address
from rehearsal_torch.cluster.address import ClusterError, check_reachable, parts_of, require_dask


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tcp://10.0.0.5:8786", ("10.0.0.5", 8786)),
        ("tls://head.cluster:1", ("head.cluster", 1)),
        ("tcp://[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_is_read(text, parts):
    assert parts_of(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.5:8786",
        "http://a:1",
        "tcp://a",
        "tcp://a:0",
        "tcp://a:65536",
        "tcp://a:1/x",
        "tcp://:1",
        "1",
    ],
)
def test_what_is_no_address_is_named(text):
    with pytest.raises(ClusterError, match=r"such as tcp://10\.0\.0\.5:8786; got "):
        parts_of(text)


def test_an_address_where_nothing_listens_is_named():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(ClusterError, match=rf"no Dask scheduler can be reached at {place} \(.*refused"):
            check_reachable(place, 2.0)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("sent", "passes"),
    [
        ((20).to_bytes(8, "little"), True),
        (b"", False),
        (b"\x14\0", False),
        (b"SSH-2.0-", False),
        (bytes(8), False),
    ],
)
def test_what_listens_must_begin_as_a_scheduler_does(sent, passes):
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def answer():
            held.append(server.accept()[0])
            held[0].sendall(sent)

        thread = threading.Thread(target=answer)
        thread.start()
        place = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if passes:
            check_reachable(place, 2.0)
        else:
            with pytest.raises(ClusterError, match="listens there does not answer as a Dask scheduler does"):
                check_reachable(place, 0.2)
        thread.join()
        held[0].close()


def test_behind_tls_it_is_enough_that_something_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"tls://127.0.0.1:{server.getsockname()[1]}", 2.0)


def test_without_the_package_the_extra_is_named(monkeypatch):
    require_dask()
    monkeypatch.setattr(address, "find_spec", lambda name: None)
    with pytest.raises(
        ClusterError, match=r"package distributed; .*pip install 'rehearsal-torch\[cluster\]'"
    ):
        require_dask()
