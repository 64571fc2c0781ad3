"""Rounds that the workers of a Dask cluster share are those of one process."""

import os
import signal
import time
from contextlib import contextmanager

import joblib
import pytest

from rehearsal_torch.cluster import sharing
from rehearsal_torch.cluster.address import ClusterError
from rehearsal_torch.cluster.connection import connected
from rehearsal_torch.cluster.sharing import grouped, named_cluster, shared_results
from rehearsal_torch.loop import rounds
from rehearsal_torch.training.fit import fit
from tests.toys.foresight import Grid, GridTogether, LinearResponse, Market, near_one, near_ones


class Slow(Grid):
    """Takes its time, leaves a mark for each case, and one for each time that it reaches a process."""

    def __init__(self, folder, seconds=0.1):
        self.folder, self.seconds = folder, seconds

    def __call__(self, objective):
        (self.folder / f"case-{time.monotonic_ns()}-{os.getpid()}").touch()
        time.sleep(self.seconds)
        return super().__call__(objective)

    def __setstate__(self, state):
        self.__dict__.update(state)
        (self.folder / f"received-{time.monotonic_ns()}-{os.getpid()}").touch()


def marks(folder, kind):
    """The processes that left marks of a kind, one for each mark."""
    return [int(path.name.split("-")[2]) for path in folder.glob(f"{kind}-*")]


@pytest.fixture(scope="module")
def market():
    return Market()


@pytest.fixture(scope="module")
def surrogate(market):
    return fit(LinearResponse(), market.observations())


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two processes of this machine, which joblib's context names."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as started:
        yield started


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client, joblib.parallel_config("dask", client=client):
        yield client


@pytest.mark.parametrize(
    ("batches", "workers", "sizes"),
    [(0, 2, []), (3, 2, [1, 1, 1]), (8, 2, [1] * 8), (9, 2, [2, 2, 2, 2, 1]), (1000, 1, [16] * 62 + [8])],
)
def test_groups_are_sized_to_the_workers(batches, workers, sizes):
    cut = [[index] for index in range(batches)]
    found = grouped(cut, workers)
    assert [len(each) for each in found] == sizes
    assert [batch for each in found for batch in each] == cut


def test_without_a_context_there_is_no_cluster():
    assert named_cluster() is None
    for local in ("loky", "threading", "sequential"):
        with joblib.parallel_config(local):
            assert named_cluster() is None


def test_a_context_that_cannot_share_rounds_is_named(market, surrogate):
    class Elsewhere(joblib.parallel.ParallelBackendBase):
        def effective_n_jobs(self, n_jobs):
            return 2

    with joblib.parallel_config(Elsewhere()):
        with pytest.raises(ClusterError, match="the backend Elsewhere, which cannot share tasks"):
            rounds(market, surrogate, near_one(), Grid(), workers=2)
        assert len(list(rounds(market, surrogate, near_one(), Grid(), range(2)))) == 2


@pytest.mark.bench
@pytest.mark.parametrize(("search", "begin"), [(GridTogether(3), 0), (GridTogether(3), 5)])
def test_a_cluster_that_the_context_names_makes_the_same_rounds(client, market, surrogate, search, begin):
    def lines(**how):
        made = rounds(market, surrogate, near_ones(1.0), search, range(11), begin=begin, **how)
        return [each.line() for each in made]

    assert lines(workers=2) == lines()


@contextmanager
def managed(**settings):
    """A client of a new cluster whose active memory manager has these settings."""
    import dask
    from distributed import Client, LocalCluster

    manager = {f"distributed.scheduler.active-memory-manager.{name}": said for name, said in settings.items()}
    local = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set(manager),
        LocalCluster(**local) as started,
        Client(started, set_as_default=False) as client,
        joblib.parallel_config("dask", client=client),
    ):
        yield client


@pytest.mark.bench
def test_the_method_reaches_each_worker_once_and_decides_nothing_here(market, surrogate, tmp_path):
    with managed(start=False) as client:
        made = list(rounds(market, surrogate, near_one(1.0), Slow(tmp_path), range(12), workers=2))
        workers = sorted(client.run(os.getpid).values())
    assert [each.index for each in made] == list(range(12))
    assert sorted(marks(tmp_path, "received")) == workers
    assert len(marks(tmp_path, "case")) == 12
    assert set(marks(tmp_path, "case")) == set(workers)


@pytest.mark.bench
@pytest.mark.slow
def test_a_copy_that_the_memory_manager_drops_changes_nothing(market, surrogate, tmp_path):
    expected = [each.line() for each in rounds(market, surrogate, near_one(1.0), Grid(), range(12))]
    with managed(start=True, interval="10ms") as client:
        made = rounds(market, surrogate, near_one(1.0), Slow(tmp_path), range(12), workers=2)
        found = [each.line() for each in made]
        workers = set(client.run(os.getpid).values())
    assert found == expected
    assert set(marks(tmp_path, "case")) <= set(marks(tmp_path, "received")) <= workers


@pytest.mark.slow
def test_what_has_changed_since_is_sent_again(client, market):
    surrogate = fit(LinearResponse(), market.observations())

    def lines(**how):
        return [each.line() for each in rounds(market, surrogate, near_one(1.0), Grid(), range(5), **how)]

    first = lines(workers=2)
    surrogate.response.weights += 1
    assert lines(workers=2) == lines() != first


@pytest.mark.slow
@pytest.mark.parametrize("killed", [pytest.param(1, marks=pytest.mark.bench), 2])
def test_workers_that_are_killed_change_nothing(client, market, surrogate, tmp_path, killed):
    expected = [each.line() for each in rounds(market, surrogate, near_one(1.0), Grid(), range(24))]
    client.wait_for_workers(2, timeout=30)
    workers = list(client.run(os.getpid).values())[:killed]
    found = []
    for each in rounds(market, surrogate, near_one(1.0), Slow(tmp_path), range(24), workers=2):
        if each.index == 4:
            for number in workers:
                os.kill(number, signal.SIGKILL)
        found.append(each.line())
    assert found == expected
    assert set(marks(tmp_path, "case")) - set(workers), "others have taken the cases over"
    assert len(marks(tmp_path, "case")) > 24 - 3 * killed


@pytest.mark.slow
def test_errors_of_a_round_arrive_as_they_are(client, market, surrogate):
    class Broken(Grid):
        def __call__(self, objective):
            raise FloatingPointError("expected finite values and slopes of the objective")

    with pytest.raises(ValueError, match="no answer follows from the fitted surrogate: expected finite"):
        list(rounds(market, surrogate, near_one(), Broken(), range(3), workers=2))


@pytest.mark.slow
def test_workers_with_other_versions_are_refused(client, market, surrogate, monkeypatch):
    here = sharing.versions()
    with monkeypatch.context() as patched:
        patched.setattr(client, "run", lambda asked, on_error: {"tcp://a:1": here | {"torch": "1.0"}})
        with pytest.raises(ClusterError, match=r"tcp://a:1 would compute other numbers .* torch 1\.0 there"):
            list(rounds(market, surrogate, near_one(), Grid(), range(3), workers=2))


@pytest.mark.slow
def test_a_worker_with_other_versions_that_joins_later_is_refused(client, market, surrogate, monkeypatch):
    here = sharing.versions()
    monkeypatch.setattr(sharing, "versions", lambda: here | {"torch": "1.0"})
    with pytest.raises(ClusterError, match=r"a worker joined that has other versions: .* expected .*'1\.0'"):
        list(rounds(market, surrogate, near_one(), Grid(), range(3), workers=2))


@pytest.mark.slow
def test_workers_without_the_package_are_named(client, market, surrogate, monkeypatch):
    monkeypatch.setattr(
        client, "run", lambda asked, on_error: {"tcp://a:1": ModuleNotFoundError("No module")}
    )
    with pytest.raises(ClusterError, match="worker tcp://a:1 cannot import this package"):
        list(rounds(market, surrogate, near_one(), Grid(), range(3), workers=2))


@pytest.mark.slow
def test_a_task_of_the_cluster_does_not_share_again(client):
    def asked():
        try:
            with joblib.parallel_config("dask"):
                named_cluster()
        except ClusterError as error:
            return str(error)

    assert "within a task of a Dask cluster: ask for workers=1" in client.submit(asked, pure=False).result(60)


@pytest.mark.slow
def test_threads_of_this_process_are_refused(market, surrogate):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
        joblib.parallel_config("dask", client=client),
        pytest.raises(ClusterError, match=r"threads of the process that sends them work.*processes=True"),
    ):
        list(rounds(market, surrogate, near_one(), Grid(), range(3), workers=2))


@pytest.mark.bench
@pytest.mark.slow
def test_one_worker_is_a_cluster_too_and_is_sent_the_method_again(market, surrogate, tmp_path):
    expected = [each.line() for each in rounds(market, surrogate, near_one(1.0), Grid(), range(8))]
    found = []
    with connected(None, 1) as client:
        (worker,) = client.run(os.getpid).values()
        for each in rounds(market, surrogate, near_one(1.0), Slow(tmp_path), range(8), workers=2):
            if each.index == 1:
                os.kill(worker, signal.SIGKILL)
            found.append(each.line())
        (next_worker,) = client.run(os.getpid).values()
    assert found == expected
    assert set(marks(tmp_path, "case")) == {worker, next_worker}
    assert sorted(marks(tmp_path, "received")) == sorted({worker, next_worker})


@pytest.mark.bench
def test_a_cluster_that_ends_is_named(market, surrogate, tmp_path):
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        client = Client(cluster.scheduler_address, set_as_default=False, timeout=5)
        with joblib.parallel_config("dask", client=client):
            made = rounds(market, surrogate, near_one(), Slow(tmp_path), range(40), workers=2)
            next(made)
            cluster.close()
            with pytest.raises(ClusterError, match="connection to the scheduler of the cluster was lost"):
                list(made)
            client.close(timeout=1)
            with pytest.raises(ClusterError, match="connection to the scheduler of the cluster was lost"):
                list(shared_results(client, max, 0, [1], 2))


@pytest.mark.slow
def test_a_cluster_that_has_no_worker_is_named_in_time(market, surrogate, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(sharing, "WITHOUT_WORKERS", 0.5)
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
        joblib.parallel_config("dask", client=client),
        pytest.raises(ClusterError, match=r"no worker for 0.5 seconds: start one with `dask worker tcp://"),
    ):
        list(rounds(market, surrogate, near_one(), Grid(), range(3), workers=2))
