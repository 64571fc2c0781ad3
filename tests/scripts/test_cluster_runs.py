"""Runs whose cases are shared by the workers of a Dask cluster leave the bytes of one process."""

import os
import signal
import socket
import threading
import time

import pytest

from tests.scripts.run_bytes import content
from tests.scripts.typing_in import HERE, TOY, called, typed

pytestmark = pytest.mark.bench


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a checkpoint, `trained`, and the decisions of one process, `whole`."""
    folder = tmp_path_factory.mktemp("place")
    for typed_in in (
        ("train", *TOY, "out=trained"),
        ("decide", *TOY, "checkpoint=trained", "out=whole", "workers=1"),
    ):
        answer = called(folder, *typed_in)
        assert answer.code == 0, answer.err
    return folder


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of two worker processes, which find the modules of the tests."""
    from distributed import LocalCluster

    monkeypatch.syspath_prepend(str(HERE))
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as started:
        yield started


def test_workers_that_the_run_starts(place):
    answer = typed(place, "decide", *TOY, "checkpoint=trained", "out=started", "parallel=dask", "workers=2")
    assert answer.code == 0, answer.err
    assert "Traceback" not in answer.err
    assert content(place / "started") == content(place / "whole")
    assert len(content(place / "whole")) >= 4


def test_a_cluster_of_ones_own_of_which_a_worker_is_killed(place, cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        workers = client.run(os.getpid)
        decided = place / "shared/decisions.jsonl"
        killed = []

        def kill():
            ends = time.monotonic() + 120
            while time.monotonic() < ends and not (decided.is_file() and decided.read_bytes()):
                time.sleep(0.01)
            number = next(iter(workers.values()))
            os.kill(number, signal.SIGKILL)
            killed.append((number, len(decided.read_bytes().splitlines())))

        killer = threading.Thread(target=kill)
        killer.start()
        slow = ("checkpoint=trained", "dataset.pause=0.3", "out=shared")
        shared = ("parallel=dask", f"dask.address={cluster.scheduler_address}")
        answer = called(place, "decide", *TOY, *slow, *shared)
        killer.join()
    assert answer.code == 0, answer.err
    assert f"Dask dashboard: {cluster.dashboard_link}" in answer.err
    ((_, lines),) = killed
    one = (place / "whole/decisions.jsonl").read_bytes()
    assert 0 < lines < len(one.splitlines()), "it was killed in mid-run"
    assert decided.read_bytes() == one
    text = b"".join(path.read_bytes() for path in (place / "shared").rglob("*") if path.is_file())
    assert cluster.scheduler_address.encode() not in text, "an address is never taken from a folder"


def test_an_address_where_nothing_listens_ends_before_anything_is_written(place):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        typed_in = ("checkpoint=trained", "out=lost", "parallel=dask", f"dask.address={address}")
        answer = called(place, "decide", *TOY, *typed_in)
    assert answer.code == 2
    assert not (place / "lost").exists()
    (line,) = answer.err.strip().splitlines()
    assert line.startswith(f"dask.address={address}: no Dask scheduler can be reached at {address} (")
    assert line.endswith("or leave dask.address out to start workers on this machine.")


def test_what_listens_and_is_no_scheduler_is_named(place):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        typed_in = ("checkpoint=trained", "out=mute", "parallel=dask", f"dask.address={address}")
        answer = called(place, "decide", *TOY, *typed_in)
    assert answer.code == 2
    assert not (place / "mute").exists()
    assert "Traceback" not in answer.err
    assert "does not answer as a Dask scheduler does" in answer.err


def test_a_folder_does_not_name_a_cluster(place):
    path = place / "named"
    assert called(place, "decide", *TOY, "checkpoint=trained", "out=named", "limit=1").code == 0
    run = (path / "run.json").read_text()
    (path / "run.json").write_text(run.replace('"limit=1"', '"limit=1", "dask.address=tcp://10.0.0.5:8786"'))
    answer = called(place, "decide", *TOY[:2], "resume=named")
    assert answer.code == 2
    assert "dask is never taken from a folder" in answer.err
