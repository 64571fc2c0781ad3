"""Tasks that the workers of a Dask cluster share.

What all tasks have in common (for rounds: problem, surrogate, objective, search) is sent to every worker
once, before the first of them. After that, groups of tasks travel, and their results. For B tasks and W
workers a group has

    min(16, ceil(B / (4 W)))

tasks: enough that messages cost little, few enough that workers end together and results arrive steadily.
Dask's active memory manager may drop a worker's copy while no group waits for it; the worker then fetches it
again from another one.
Results are given back in the order of the tasks. A result depends on what is common and on its task alone,
so that the results do not depend on the cluster.

Tasks of one worker process are computed one after the other: torch's random state and its number of threads
belong to the process. A worker that has more threads therefore gains nothing from them.

A worker that dies is replaced by the others: Dask computes its groups again. If all workers die that hold
what is common, it is sent again. Dask gives a group up after some deaths (its setting
``distributed.scheduler.allowed-failures``, by default 3), and then the tasks end with an error.

The cluster is the one that joblib's context names (``joblib.parallel_config(backend="dask")``); tasks are
sent by its client, not by ``joblib.Parallel``, which computes everything in the calling process if the
cluster has one thread.

Source: ours. Dask: Rocklin (2015), Dask: parallel computation with blocked algorithms and task scheduling.
"""

import platform
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import torch

from rehearsal_torch.cluster.address import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

Common = TypeVar("Common")
Task = TypeVar("Task")
Result = TypeVar("Result")

# The most tasks in a group, and the groups that are sent ahead for each worker.
MOST, AHEAD = 16, 4
# Seconds between two looks at the cluster, and without any worker before the tasks end with an error.
LOOK, WITHOUT_WORKERS = 2.0, 60.0
# How often what is common is sent, if all workers die that hold it.
SENDINGS = 4
# Backends of joblib that compute on this machine, and that of a Dask cluster.
_HERE = ("LokyBackend", "MultiprocessingBackend", "SequentialBackend", "ThreadingBackend")
_DASK = "DaskDistributedBackend"
# Names this process; a worker that knows it is a thread of the process that sends the tasks.
_this_process = uuid4().hex
_one_at_a_time = threading.Lock()


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
            f"the joblib context names the backend {name}, which cannot share tasks: expected dask or loky; "
            "leave the context, or ask for workers=1, which computes in this process"
        )
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return backend.client
    raise ClusterError(
        "nothing can be shared from within a task of a Dask cluster: ask for workers=1 there, or share the "
        "work from outside"
    )


def versions() -> dict[str, str]:
    """The versions on which the numbers of a result depend, by name."""
    from importlib.metadata import version

    found = {name: version(name) for name in ("rehearsal-torch", "torch", "numpy", "scipy")}
    return {"Python": ".".join(platform.python_version_tuple()[:2]), **found}


def shared_results(
    client: "Client",
    work: Callable[[Common, Task], Result],
    common: Common,
    tasks: Sequence[Task],
    workers: int,
) -> Iterator[Result]:
    """The results work(common, task) of all tasks, in order, computed by the workers of a cluster.

    Args:
        client: The connection to the cluster.
        work: Computes a result; must be picklable, as must be all that it is given and returns.
        common: The first argument of all tasks.
        tasks: The second argument of each task.
        workers: The number of groups that are computed at the same time; from the number of the cluster's
            workers on, all of them.

    Yields:
        One result per task.

    Raises:
        ClusterError: if the cluster has no workers, they have other versions than this process or are threads
            of it, they die again and again, or the connection is lost.
    """
    there = _workers_of(client)
    groups = iter(grouped(tasks, min(workers, there)))
    ahead = AHEAD * there if workers >= there else workers
    waiting: deque[tuple[Sequence[Task], Future]] = deque()
    held, sendings = _sent(client, (work, common)), 1
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
                held, sendings = _sent(client, (work, common)), sendings + 1
                waiting = deque((each, _task(client, held, each)) for each, _ in waiting)
            else:
                raise ClusterError(
                    f"all workers of the cluster died {SENDINGS} times: look at their logs, and give them "
                    "more memory if it ran out"
                )
    finally:
        if waiting and client.status == "running":
            client.cancel([future for _, future in waiting])


def grouped(tasks: Sequence[Task], workers: int) -> list[Sequence[Task]]:
    """Tasks in groups, in order, of the size for a number of workers.

    Args:
        tasks: The tasks.
        workers: The number of workers, at least 1.
    """
    size = max(1, min(MOST, ceil(len(tasks) / (AHEAD * workers))))
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


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


def _sent(client: "Client", given: tuple[Callable[..., Any], Any]) -> "Future":
    """What all tasks have in common, held by every worker."""
    try:
        return client.scatter(given, broadcast=True, hash=False, timeout=WITHOUT_WORKERS)
    except TimeoutError as error:
        raise _without_workers(client) from error


def _task(client: "Client", held: "Future", group: Sequence[Any]) -> "Future":
    return client.submit(_results, held, group, _this_process, versions(), pure=False)


def _results(
    given: tuple[Callable[[Any, Task], Result], Any],
    group: Sequence[Task],
    sender: str,
    expected: dict[str, str],
) -> list[Result]:
    """The results of a group, in a worker."""
    from joblib import parallel_config

    if sender == _this_process:
        raise ClusterError(
            "the workers of this cluster are threads of the process that sends them work, whose random "
            "numbers they would share: start it with LocalCluster(processes=True), or leave the cluster out"
        )
    if versions() != expected:
        raise ClusterError(f"a worker joined that has other versions: {versions()}; expected {expected}")
    with _one_at_a_time, parallel_config(backend="sequential"):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            work, common = given
            return [work(common, task) for task in group]
        finally:
            torch.set_num_threads(threads)


def _result(client: "Client", future: "Future") -> list[Any] | None:
    """The results of a group; None if the workers that held what is common are gone."""
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
            f"workers of the cluster died over the same tasks, the last one at {error.last_worker.address}: "
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
