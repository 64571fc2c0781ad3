"""Rounds that the workers of a Dask cluster share.

The method (problem, surrogate, objective, search) is sent to every worker once, before the first round.
After that, a task is a group of batches of indices, and its result the rounds of these. For B batches and W
workers a group has

    min(16, ceil(B / (4 W)))

batches: enough that messages cost little, few enough that workers end together and rounds arrive steadily.
Dask's active memory manager may drop a worker's copy while no group waits for it; the worker then fetches it
again from another one.
Results are given back in the order of the groups. Batches are cut before they are grouped, and a round
depends on the seed and its indices alone, so that the rounds do not depend on the cluster.

Tasks of one worker process are computed one after the other: torch's random state and its number of threads
belong to the process. A worker that has more threads therefore gains nothing from them.

A worker that dies is replaced by the others: Dask computes its groups again. If all workers die that hold the
method, it is sent again. Dask gives a group up after some deaths (its setting
``distributed.scheduler.allowed-failures``, by default 3), and then the rounds end with an error.

The cluster is the one that joblib's context names (``joblib.parallel_config(backend="dask")``); tasks are
sent by its client, not by ``joblib.Parallel``, which computes everything in the calling process if the
cluster has one thread.

Source: ours. Dask: Rocklin (2015), Dask: parallel computation with blocked algorithms and task scheduling.
"""

import platform
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import torch

from rehearsal_torch.cluster.address import ClusterError
from rehearsal_torch.round_line import Round

if TYPE_CHECKING:
    from distributed import Client, Future

# The most batches in a group, and the groups that are sent ahead for each worker.
MOST, AHEAD = 16, 4
# Seconds between two looks at the cluster, and without any worker before the rounds end with an error.
LOOK, WITHOUT_WORKERS = 2.0, 60.0
# How often the method is sent, if all workers die that hold it.
SENDINGS = 4
# Backends of joblib that compute on this machine, and that of a Dask cluster.
_HERE = ("LokyBackend", "MultiprocessingBackend", "SequentialBackend", "ThreadingBackend")
_DASK = "DaskDistributedBackend"
# Names this process; a worker that knows it is a thread of the process that sends the tasks.
_this_process = uuid4().hex
_one_at_a_time = threading.Lock()


class Shared(Protocol):
    """What is sent to the workers."""

    def rounds(self, indices: Sequence[int]) -> list[Round]:
        """The rounds of one batch of cases."""


def named_cluster() -> "Client | None":
    """The client of the Dask cluster that joblib's context names; None if it names processes or threads of
    this machine, or nothing.

    Raises:
        ClusterError: if it names another backend, or this is a task of a Dask cluster itself.
    """
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    name = type(backend).__name__
    if name in _HERE:
        return None
    if name != _DASK:
        raise ClusterError(
            f"the joblib context names the backend {name}, which cannot share rounds: expected dask or loky; "
            "leave the context, or ask for workers=1, which decides in this process"
        )
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return backend.client
    raise ClusterError(
        "rounds cannot be shared from within a task of a Dask cluster: ask for workers=1, or share the "
        "rounds instead of the tasks"
    )


def versions() -> dict[str, str]:
    """The versions on which the numbers of a round depend, by name."""
    from importlib.metadata import version

    found = {name: version(name) for name in ("rehearsal-torch", "torch", "numpy", "scipy")}
    return {"Python": ".".join(platform.python_version_tuple()[:2]), **found}


def shared_rounds(
    client: "Client", method: Shared, batches: Sequence[Sequence[int]], workers: int
) -> Iterator[Round]:
    """The rounds of all batches, in order, computed by the workers of a cluster.

    Args:
        client: The connection to the cluster.
        method: Computes the rounds of a batch; must be picklable.
        batches: The indices of each batch.
        workers: The number of groups that are computed at the same time; from the number of the cluster's
            workers on, all of them.

    Yields:
        One round per index.

    Raises:
        ClusterError: if the cluster has no workers, they have other versions than this process or are threads
            of it, they die again and again, or the connection is lost.
    """
    there = _workers_of(client)
    groups = iter(grouped(batches, min(workers, there)))
    ahead = AHEAD * there if workers >= there else workers
    waiting: deque[tuple[Sequence[Sequence[int]], Future]] = deque()
    held, sendings = _sent(client, method), 1
    try:
        while True:
            waiting.extend((each, _task(client, held, each)) for each in islice(groups, ahead - len(waiting)))
            if not waiting:
                return
            made = _result(client, waiting[0][1])
            if made is not None:
                waiting.popleft()
                yield from made
            elif sendings < SENDINGS:
                held, sendings = _sent(client, method), sendings + 1
                waiting = deque((each, _task(client, held, each)) for each, _ in waiting)
            else:
                raise ClusterError(
                    f"all workers of the cluster died {SENDINGS} times: look at their logs, and give them "
                    "more memory if it ran out"
                )
    finally:
        if waiting and client.status == "running":
            client.cancel([future for _, future in waiting])


def grouped(batches: Sequence[Sequence[int]], workers: int) -> list[Sequence[Sequence[int]]]:
    """Batches in groups, in order, of the size for a number of workers.

    Args:
        batches: The batches.
        workers: The number of workers, at least 1.
    """
    size = max(1, min(MOST, ceil(len(batches) / (AHEAD * workers))))
    return [batches[start : start + size] for start in range(0, len(batches), size)]


def _workers_of(client: "Client") -> int:
    """The number of worker processes, all of which have the versions of this process."""
    if client.status != "running":
        raise _lost()
    try:
        client.wait_for_workers(1, timeout=WITHOUT_WORKERS)
        answers = client.run(versions, on_error="return")
    except (TimeoutError, OSError) as error:
        raise _without_workers(client) from error
    expected = versions()
    for address, found in answers.items():
        if isinstance(found, BaseException):
            raise ClusterError(
                f"the worker {address} cannot import this package ({type(found).__name__}: {found}): install "
                f"rehearsal-torch {expected['rehearsal-torch']} where the workers and the scheduler run"
            )
        other = [
            f"{name} {found.get(name)} there, {expected[name]} here"
            for name in expected
            if found.get(name) != expected[name]
        ]
        if other:
            raise ClusterError(
                f"the worker {address} would compute other numbers than this process: {'; '.join(other)}; "
                "install the same versions on both sides"
            )
    return max(1, len(answers))


def _without_workers(client: "Client") -> ClusterError:
    return ClusterError(
        f"the cluster at {_address(client)} has had no worker for {WITHOUT_WORKERS:g} seconds: start one "
        f"with `dask worker {_address(client)} --nthreads 1`"
    )


def _address(client: "Client") -> str:
    return str(client.scheduler.address) if client.scheduler is not None else "an unknown address"


def _sent(client: "Client", method: Shared) -> "Future":
    """The method, held by every worker."""
    try:
        return client.scatter(method, broadcast=True, hash=False, timeout=WITHOUT_WORKERS)
    except TimeoutError as error:
        raise _without_workers(client) from error


def _task(client: "Client", held: "Future", group: Sequence[Sequence[int]]) -> "Future":
    return client.submit(_rounds, held, group, _this_process, versions(), pure=False)


def _rounds(
    method: Shared, group: Sequence[Sequence[int]], sender: str, expected: dict[str, str]
) -> list[Round]:
    """The rounds of a group, in a worker."""
    from joblib import parallel_config

    if sender == _this_process:
        raise ClusterError(
            "the workers of this cluster are threads of the process that decides, whose random numbers they "
            "would share: start it with LocalCluster(processes=True), or leave the cluster out"
        )
    if versions() != expected:
        raise ClusterError(f"a worker joined that has other versions: {versions()}; expected {expected}")
    with _one_at_a_time, parallel_config(backend="sequential"):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return [each for indices in group for each in method.rounds(indices)]
        finally:
            torch.set_num_threads(threads)


def _result(client: "Client", future: "Future") -> list[Round] | None:
    """The rounds of a task; None if the workers that held the method are gone."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    populated = time.monotonic()
    try:
        while not future.done():
            # It ends with a TimeoutError of the task itself, too, which the line after the loop raises.
            with suppress(TimeoutError):
                return future.result(timeout=LOOK)
            now = time.monotonic()
            populated = now if client.nthreads() else populated
            if now - populated > WITHOUT_WORKERS:
                raise _without_workers(client)
        return future.result()
    except KilledWorker as error:
        raise ClusterError(
            f"workers of the cluster died over the same cases, the last one at {error.last_worker.address}: "
            "look at its log, and give workers more memory if it ran out"
        ) from error
    except (CancelledError, CommClosedError) as error:
        if client.status == "running" and isinstance(error, CancelledError):
            return None
        raise _lost() from error


def _lost() -> ClusterError:
    return ClusterError(
        "the connection to the scheduler of the cluster was lost: it has ended, or the network is down"
    )
