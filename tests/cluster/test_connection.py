"""Connecting to a Dask cluster."""

import logging
import os
import socket
import subprocess
import sys
import time

import pytest

from rehearsal_torch.cluster import connection
from rehearsal_torch.cluster.address import ClusterError
from rehearsal_torch.cluster.connection import connected
from rehearsal_torch.cluster.sharing import named_cluster


@pytest.mark.slow
def test_importing_the_loop_imports_nothing_of_dask():
    code = (
        "import sys, rehearsal_torch.loop, rehearsal_torch.cluster.connection; "
        "print(sorted({'dask', 'distributed'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.slow
def test_workers_of_this_machine_are_there_as_long_as_the_connection():
    import distributed  # noqa: F401  sets its loggers up

    level = logging.getLogger("distributed").level
    with connected(None, 2) as client:
        assert named_cluster() is client
        workers = client.run(os.getpid)
        assert len({*workers.values(), os.getpid()}) == 3
        assert all(address.startswith("tls://127.0.0.1:") for address in workers)
        assert set(client.nthreads().values()) == {1}
    assert named_cluster() is None
    assert client.status == "closed"
    assert logging.getLogger("distributed").level == level
    ends = time.monotonic() + 20
    while any(running(number) for number in workers.values()):
        assert time.monotonic() < ends, "a worker outlived the connection"
        time.sleep(0.05)


@pytest.mark.slow
def test_no_other_process_of_this_machine_can_reach_the_workers(monkeypatch):
    """They unpickle what they are sent: by plain tcp, any user of the machine could run code in them."""
    from distributed import Client
    from distributed.security import Security

    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with connected(None, 1) as client:
        # Dask's own setting made workers give back every block at once.
        assert set(client.run(os.getenv, "MALLOC_TRIM_THRESHOLD_").values()) == {None}
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        for place, how in ((address.replace("tls", "tcp"), None), (address, Security.temporary())):
            with pytest.raises(OSError, match=r"Timed out|[Cc]onnect|TLS"):
                Client(place, timeout=2, security=how, set_as_default=False)


def running(number):
    answer = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(answer) and not answer.startswith("Z")


@pytest.mark.slow
def test_a_cluster_of_ones_own_goes_on_and_its_dashboard_is_told():
    from distributed import LocalCluster

    told = []
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        for _ in range(2):
            with connected(cluster.scheduler_address, 1, told.append) as client:
                assert client.submit(sum, [1, 2]).result(60) == 3
        port = cluster.scheduler.services["dashboard"].port
    assert told == [f"Dask dashboard: http://127.0.0.1:{port}/status"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bokeh", "line"),
    [
        (None, "Dask dashboard: needs bokeh, which is not installed: pip install bokeh"),
        (True, "Dask dashboard: http://127.0.0.1:"),
    ],
)
def test_the_page_of_workers_that_are_started_here_is_told_or_what_it_needs(monkeypatch, bokeh, line):
    told = []
    monkeypatch.setattr(connection, "find_spec", {"bokeh": bokeh, "distributed": True}.get)
    with connected(None, 1, told.append):
        pass
    assert len(told) == 1
    assert told[0].startswith(line)


@pytest.mark.slow
def test_nothing_of_workers_of_this_machine_listens_to_other_machines():
    import psutil

    with connected(None, 1) as client:
        found = [
            each.laddr.ip
            for number in (os.getpid(), *client.run(os.getpid).values())
            for each in psutil.Process(number).net_connections("inet")
            if each.status == psutil.CONN_LISTEN
        ]
    # Scheduler, worker and nanny, and their pages.
    assert len(found) >= 4
    assert set(found) == {"127.0.0.1"}


@pytest.mark.slow
def test_what_is_no_scheduler_is_given_up_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with (
            pytest.raises(ClusterError, match=rf"at {place} \(.*does not answer as a Dask scheduler does\)"),
            connected(place, 1, seconds=1.0),
        ):
            pass
    assert time.monotonic() - began < 10
