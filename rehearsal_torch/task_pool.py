"""Parallel map over processes or a cluster: rounds of decisions, fits of folds and of ensemble members.

    result_t = work(common, t),        t = 1 ... n, in this order

The number of workers and joblib's context determine where results are computed:

    workers = 1, or one task         this process
    a Dask cluster in the context    its workers
    otherwise                        processes of this machine (loky), each with one thread

`common` is sent to each process once; after that, only tasks and results travel. Tensors of a GPU are sent as
tensors of the CPU, where the workers compute. A result depends on its two arguments alone, which determine
the seed of all random draws; results are therefore equal to the last bit, wherever they are computed. An
error of a task is raised here in place of its result, with the worker's traceback as a note. A killed worker
of this machine is an error as well. The tasks of a cluster's killed worker are computed by the others; Dask
gives a task up after some deaths (``distributed.scheduler.allowed-failures``, by default 3), or once all
workers died that hold `common`, which is an error.

Tasks are sent to a cluster by its own client: joblib's backend waits forever for a task that Dask gave up.

A task computes all of its own calls of `results` in its process, and shows no progress.

**When sharing pays.** The first call starts workers, each of which imports the packages; that takes seconds
(docs/results/scale). They stay for five minutes, and later calls use them. Fits of a tenth of a second are
not worth that. Where tasks are timed, the first one is computed here, and the others are shared if, each
taking as long, they take at least `PAYS` = 10 s, of which two processes save half. A cluster in the context
is always used.
"""

import io
import os
import platform
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import numpy as np
import torch

from rehearsal_torch.dask_cluster import PATIENCE, ClusterError, named_cluster
from rehearsal_torch.progress import silent
from rehearsal_torch.worker_processes import begin

if TYPE_CHECKING:
    from distributed import Client

Common = TypeVar("Common")
Task = TypeVar("Task")
Result = TypeVar("Result")

# Seconds that the tasks after the first one must take in this process to be shared.
PAYS = 10.0
# Tasks sent ahead for each process.
AHEAD = 4
# In a worker: the last (work, common) received, by its token.
_last_received: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {}
# Holds one entry while this process computes a task.
_tasks_running: list[bool] = []
# Torch's random state belongs to the process, whatever number of threads a worker of a cluster has.
_one_at_a_time = threading.Lock()
# Names this process; a worker that has the same name is a thread of it.
_this_process = uuid4().hex


def results(
    work: Callable[[Common, Task], Result],
    common: Common,
    tasks: Sequence[Task],
    workers: int,
    *,
    timed: bool = False,
    ahead: int = AHEAD,
) -> Iterator[Result]:
    """The results work(common, task), in the order of the tasks, which are small.

    Args:
        workers: The number of processes; of a cluster in joblib's context, of tasks at a time.
        timed: Whether the first task is computed here, to see whether sharing pays; ignored in a cluster.
        ahead: The number of tasks sent ahead for each process; 1 for long tasks.

    Raises:
        ValueError: if `workers` is below 1.
        ClusterError: if joblib's context names a cluster that cannot compute the tasks.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    workers = 1 if _tasks_running else workers
    cluster = named_cluster() if workers > 1 else None
    if cluster is not None:
        return _in_cluster(cluster, work, common, tasks, workers, ahead)
    return _of_this_machine(work, common, tasks, workers, timed, ahead)


def worth(seconds: float, count: int, workers: int) -> int:
    """The number of workers for `count` tasks of so many seconds: 1 if sharing does not pay."""
    if seconds * count >= PAYS or (workers > 1 and not _tasks_running and named_cluster() is not None):
        return workers
    return 1


def on_cpu(value: Common) -> Common:
    """A copy of a picklable object, in which all tensors are on the CPU."""
    copied: Common = _unpacked(_packed(value))
    return copied


def _of_this_machine(
    work: Callable[[Common, Task], Result],
    common: Common,
    tasks: Sequence[Task],
    workers: int,
    timed: bool,
    ahead: int,
) -> Iterator[Result]:
    if timed and min(workers, len(tasks)) > 1:
        began = time.perf_counter()
        first = work(common, tasks[0])
        workers, tasks = worth(time.perf_counter() - began, len(tasks) - 1, workers), tasks[1:]
        yield first
        del first
    workers = min(workers, len(tasks))
    if workers > 1:
        yield from _in_processes(work, common, tasks, workers, ahead)
    else:
        yield from (work(common, task) for task in tasks)


def _in_processes(
    work: Callable[[Common, Task], Result], common: Common, tasks: Sequence[Task], workers: int, ahead: int
) -> Iterator[Result]:
    """The results, by processes of this machine."""
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator",
        pre_dispatch=ahead * workers,
        batch_size=1,
        # joblib writes an array of several tasks to a file in memory once, and sends its name.
        max_nbytes=1,
        # The same at every call, so that joblib reuses the workers.
        initializer=begin,
        initargs=(os.getpid(),),
    )
    token, packed = uuid4().hex, _packed((work, common))
    answers = parallel(delayed(_compute)(token, packed, task) for task in tasks)
    try:
        yield from map(_unwrap, answers)
    finally:
        # After an error, or when the iterator is dropped, joblib abandons running tasks with a warning.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            answers.close()


def _in_cluster(
    client: "Client",
    work: Callable[[Common, Task], Result],
    common: Common,
    tasks: Sequence[Task],
    workers: int,
    ahead: int,
) -> Iterator[Result]:
    """The results, by the workers of a cluster, `workers` tasks at a time."""
    cluster_size = _workers_of(client)
    most = ahead * cluster_size if workers >= cluster_size else workers
    token, remaining, waiting = uuid4().hex, iter(tasks), deque[Any]()
    packed = client.scatter(_packed((work, common)), broadcast=True, hash=False)
    try:
        while True:
            waiting.extend(
                client.submit(_compute, token, packed, task, pure=False)
                for task in islice(remaining, most - len(waiting))
            )
            if not waiting:
                return
            try:
                answer = waiting.popleft().result()
            except Exception as error:
                raise ClusterError(
                    f"the cluster gave up a task ({type(error).__name__}: {' '.join(str(error).split())}): "
                    "workers died over it, or the scheduler has ended; look at their logs, and give workers "
                    "more memory if it ran out"
                ) from error
            yield _unwrap(answer)
    finally:
        if client.status == "running":
            client.cancel(list(waiting))


def _workers_of(client: "Client") -> int:
    """The number of worker processes; ClusterError unless all would compute the same numbers as this one."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        answers = client.run(_facts, on_error="return")
    except Exception as error:
        raise ClusterError(
            f"the cluster has no worker, or its scheduler has ended ({' '.join(str(error).split())}): start "
            "one with `dask worker ADDRESS --nthreads 1`"
        ) from error
    expected = _facts()
    for address, facts in answers.items():
        if isinstance(facts, BaseException):
            raise ClusterError(f"the worker {address} cannot import this package: {facts}")
        if facts["process"] == expected["process"]:
            raise ClusterError(
                "the workers of this cluster are threads of the process that sends them work, whose random "
                "numbers they would share: start it with LocalCluster(processes=True), or leave it out"
            )
        if facts | {"process": expected["process"]} != expected:
            raise ClusterError(
                f"the worker {address} would compute other numbers than this process: it has {facts}, and "
                f"this process {expected}; install the same versions on both sides"
            )
    return len(answers)


def _facts() -> dict[str, str]:
    """The versions on which results depend, by name, and the name of the process."""
    from importlib.metadata import version

    names = ("rehearsal-torch", "torch", "numpy", "scipy")
    return {
        "process": _this_process,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in names},
    }


def _packed(value: object) -> np.ndarray:
    """The pickle of an object as an array of bytes, in which all tensors are on the CPU."""
    from joblib.externals.loky.backend import reduction

    class Packing(reduction.get_loky_pickler()):  # type: ignore[misc]
        def reducer_override(self, value: object) -> Any:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                on_cpu = value.detach().cpu()
                if isinstance(value, torch.nn.Parameter):
                    on_cpu = torch.nn.Parameter(on_cpu, value.requires_grad)
                return on_cpu.__reduce_ex__(reduction.HIGHEST_PROTOCOL)
            inner = getattr(super(), "reducer_override", None)
            return NotImplemented if inner is None else inner(value)

    file = io.BytesIO()
    Packing(file).dump(value)
    return np.frombuffer(file.getbuffer(), dtype=np.uint8)


def _unpacked(packed: np.ndarray) -> Any:
    from joblib.externals.loky.backend import reduction

    return reduction.loads(packed.data)


def _compute(token: str, packed: np.ndarray, task: Any) -> tuple[Any, Exception | None]:
    """The result of a task in a worker, or its error."""
    with _one_at_a_time, silent():
        # The predecessor need not stay in memory during unpacking.
        if token not in _last_received:
            _last_received.clear()
            _last_received[token] = _unpacked(packed)
        work, common = _last_received[token]
        # An earlier task may have changed the number of threads.
        torch.set_num_threads(1)
        _tasks_running.append(True)
        try:
            return work(common, task), None
        except Exception as error:
            error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
            return None, error
        finally:
            _tasks_running.pop()


def _unwrap(answer: tuple[Any, Exception | None]) -> Any:
    result, error = answer
    if error is not None:
        raise error
    return result
