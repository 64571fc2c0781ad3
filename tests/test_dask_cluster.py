"""A Dask cluster shares tasks with the results of one process, and is reached by those who may."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import joblib
import pytest

from rehearsal_torch import dask_cluster, task_pool
from rehearsal_torch.dask_cluster import ClusterError, check_reachable, connected, named_cluster, require_dask
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.foresight import Grid, GridTogether, LinearResponse, Market, near_one, near_ones


class Slow(Grid):
    """Takes its time, and leaves the number of its process for each case."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, objective):
        (self.folder / f"{time.monotonic_ns()}-{os.getpid()}").touch()
        time.sleep(0.1)
        return super().__call__(objective)


def processes(folder):
    return [int(path.name.split("-")[1]) for path in folder.iterdir()]


@pytest.fixture(scope="module")
def market():
    return Market()


@pytest.fixture(scope="module")
def surrogate(market):
    return fit(LinearResponse(), market.observations())


@pytest.fixture(scope="module")
def client():
    with connected(None, 2) as client:
        yield client


@pytest.fixture
def context(client):
    with joblib.parallel_config("dask", client=client):
        yield client


def test_without_the_package_the_extra_is_named(monkeypatch):
    require_dask()
    monkeypatch.setattr(dask_cluster, "find_spec", lambda name: None)
    with pytest.raises(ClusterError, match=r"package distributed; .*'rehearsal-torch\[cluster\]'"):
        require_dask()


@pytest.mark.slow
def test_importing_the_loop_imports_nothing_of_dask():
    code = (
        "import sys, rehearsal_torch.decision_loop; print(sorted({'dask', 'distributed'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("local", [None, "loky", "threading", "sequential"])
def test_what_is_no_cluster_is_none(local):
    with nullcontext() if local is None else joblib.parallel_config(local):
        assert named_cluster() is None


def test_an_address_without_a_scheduler_is_named():
    with pytest.raises(ClusterError, match=r"^no Dask scheduler can be reached at tcp://127\.0\.0\.1:1 "):
        check_reachable("tcp://127.0.0.1:1", 1.0)


def test_an_address_is_a_host_and_a_port_alone():
    with pytest.raises(ClusterError, match=r"\(expected an address such as tcp://10\.0") as told:
        check_reachable("tcp://a:pw@127.0.0.1:1", 1.0)
    assert "pw" not in str(told.value)


@pytest.mark.slow
def test_own_workers_that_cannot_be_reached_have_no_address(monkeypatch):
    import distributed

    def failing(*args, **how):
        raise OSError("Timed out")

    monkeypatch.setattr(distributed, "LocalCluster", lambda **how: nullcontext())
    monkeypatch.setattr(distributed, "Client", failing)
    with (
        pytest.raises(ClusterError, match=r"started on this machine cannot be reached \(Timed out\)"),
        connected(None, 1),
    ):
        pass


@pytest.mark.parametrize(
    ("sent", "passes"),
    [((20).to_bytes(8, "little"), True), (b"", False), (b"SSH-2.0-", False), (bytes(8), False)],
)
def test_what_listens_must_begin_as_a_scheduler_does(sent, passes):
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        check_reachable(f"tls://{place}", 1.0)
        with ThreadPoolExecutor() as pool:
            server.accept()[0].close()
            opened = pool.submit(server.accept)
            opened.add_done_callback(lambda done: done.result()[0].sendall(sent))
            with nullcontext() if passes else pytest.raises(ClusterError, match=r"reached at tcp://.* \("):
                check_reachable(f"tcp://{place}", 0.3)
            opened.result()[0].close()


@pytest.mark.slow
def test_workers_have_one_thread_and_no_other_process_can_reach_them(client):
    """They unpickle what they are sent: by plain tcp, any user of the machine could run code in them."""
    import psutil
    from distributed import Client
    from distributed.security import Security

    workers = client.run(os.getpid)
    assert len({*workers.values(), os.getpid()}) == 3
    assert set(client.nthreads().values()) == {1}
    listening = [
        each.laddr.ip
        for number in (os.getpid(), *workers.values())
        for each in psutil.Process(number).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}
    address = client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    for place, how in ((address.replace("tls", "tcp"), None), (address, Security.temporary())):
        with pytest.raises(OSError, match=r"Timed out|[Cc]onnect|TLS"):
            Client(place, timeout=2, security=how, set_as_default=False)


@pytest.mark.slow
def test_a_cluster_of_ones_own_goes_on_and_its_dashboard_is_told():
    from distributed import LocalCluster

    told = []
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as started:
        for _ in range(2):
            with connected(started.scheduler_address, 1, told.append) as client:
                assert client.submit(sum, [1, 2]).result(60) == 3
    assert len(told) == 2
    assert told[0].startswith("Dask dashboard: http://127.0.0.1:")


@pytest.mark.slow
@pytest.mark.parametrize("begin", [0, 5])
def test_a_cluster_makes_the_rounds_of_one_process(context, market, surrogate, begin):
    def lines(**how):
        made = rounds(market, surrogate, near_ones(1.0), GridTogether(3), range(11), begin=begin, **how)
        return [each.line() for each in made]

    assert lines(workers=2) == lines()


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(context, market, surrogate, tmp_path):
    expected = [each.line() for each in rounds(market, surrogate, near_one(1.0), Grid(), range(24))]
    context.wait_for_workers(2, timeout=30)
    worker = next(iter(context.run(os.getpid).values()))
    found = []
    for each in rounds(market, surrogate, near_one(1.0), Slow(tmp_path), range(24), workers=2):
        if each.index == 4:
            os.kill(worker, signal.SIGKILL)
        found.append(each.line())
    assert found == expected
    assert worker in processes(tmp_path)
    assert set(processes(tmp_path)) - {worker}, "another has taken the cases over"
    assert os.getpid() not in processes(tmp_path)


def killed(common, task):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_task_over_which_all_workers_die_is_an_error(context):
    """joblib's own backend waits for it forever."""
    with pytest.raises(ClusterError, match="the cluster gave up a task"):
        list(task_pool.results(killed, None, range(2), 2))


@pytest.mark.slow
def test_workers_with_other_versions_or_without_the_package_are_refused(context, monkeypatch):
    here = task_pool._facts()
    for there, said in (
        (here | {"process": "other", "torch": "1.0"}, "tcp://a:1 would compute other numbers"),
        (here, "threads of the process that sends them work"),
        (ModuleNotFoundError("No module"), "worker tcp://a:1 cannot import this package: No module"),
    ):
        monkeypatch.setattr(context, "run", lambda asked, on_error, there=there: {"tcp://a:1": there})
        with pytest.raises(ClusterError, match=said):
            list(task_pool.results(divmod, 7, [2, 3], 2))


@pytest.mark.slow
def test_a_cluster_that_ends_or_has_no_worker_is_named(market, surrogate, monkeypatch, tmp_path):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(task_pool, "PATIENCE", 0.5)
    local = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=1, **local) as started:
        client = Client(started.scheduler_address, set_as_default=False, timeout=5)
        with joblib.parallel_config("dask", client=client):
            made = rounds(market, surrogate, near_one(), Slow(tmp_path), range(40), workers=2)
            next(made)
            started.close()
            with pytest.raises(ClusterError, match="the cluster gave up a task"):
                list(made)
            client.close(timeout=1)
            with pytest.raises(ClusterError, match="no worker, or its scheduler has ended"):
                list(task_pool.results(divmod, 7, [2, 3], 2))
    with (
        LocalCluster(n_workers=0, **local) as started,
        Client(started, set_as_default=False) as client,
        joblib.parallel_config("dask", client=client),
        pytest.raises(ClusterError, match="no worker, or its scheduler has ended"),
    ):
        list(task_pool.results(divmod, 7, [2, 3], 2))
