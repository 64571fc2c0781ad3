"""Tasks that processes share: the one mechanism for rounds of decisions and for fits of folds and members.

    result_t = work(common, t),        t = 1 ... n, in this order

Who computes the results follows from the number of workers and from joblib's context:

    workers = 1, or one task         this process
    a Dask cluster in the context    its workers
    otherwise                        processes of this machine (loky), each with one thread

What is common is sent to each process once; after that, only tasks and results travel. Tensors of a GPU are
sent as tensors of the CPU, where the workers compute: none of them opens the GPU. A result depends on
its two arguments alone: whatever is random in it is drawn from a seed that these determine. Results are
therefore equal to the last bit, whoever computes them. An error of a task is raised here, as it is, at the
place of its result; the trace of the worker is a note of it. A worker of this machine that is killed is an
error as well. The tasks of a cluster's worker that is killed are computed by the others; Dask gives a task up
after some deaths (its setting ``distributed.scheduler.allowed-failures``, by default 3), or once all workers
died that hold what is common, which is an error.

Tasks are sent to a cluster by its own client: joblib's backend waits forever for a task that Dask gave up.

Within a task nothing is shared again: it asks for workers in vain, so that no process starts processes. Nor
does it show progress, of which the process that shares the tasks has a line.

**When sharing pays.** The first sharing of a process starts workers, each of which imports the packages; that
takes seconds (docs/results/scale). They stay for five minutes, and later sharings use them. Fits of a tenth
of a second are not worth that. Where tasks are timed, the first one is computed here, and the others are
shared if, each taking as long, they take at least `PAYS` = 10 s: two processes save half of that time, and
more processes more than the rule believes. A cluster in the context is always used: it was asked for.
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

# Seconds that the tasks after the first one must take, here and together, to be shared.
PAYS = 10.0
# Tasks that are sent ahead for each process.
AHEAD = 4
# The token of what this process, a worker, has received last, and that.
_received: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {}
# Holds one entry while this process computes a task.
_within: list[bool] = []
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
        workers: The number of processes that share the tasks; within a cluster in joblib's context, of tasks
            at a time.
        timed: Whether the first task is computed here, to see whether sharing pays; in a cluster, all of them
            are shared.
        ahead: How many tasks are sent ahead for each process: one, where they are long.

    Raises:
        ValueError: if `workers` is below 1.
        ClusterError: if joblib's context names a cluster that cannot compute the tasks.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    workers = 1 if _within else workers
    cluster = named_cluster() if workers > 1 else None
    if cluster is not None:
        return _in_cluster(cluster, work, common, tasks, workers, ahead)
    return _of_this_machine(work, common, tasks, workers, timed, ahead)


def worth(seconds: float, count: int, workers: int) -> int:
    """The number of workers for `count` further tasks, of which one took these seconds: all that are there if
    it pays, or joblib's context names a cluster, else 1.
    """
    if seconds * count >= PAYS or (workers > 1 and not _within and named_cluster() is not None):
        return workers
    return 1


def on_cpu(value: Common) -> Common:
    """A copy of what can be pickled, in which all tensors are on the CPU, as workers are sent it."""
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
    """Shares tasks with processes of this machine."""
    from joblib import Parallel, delayed

    share = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator",
        pre_dispatch=ahead * workers,
        batch_size=1,
        # An array that joblib meets in several tasks is written to a file in memory once, and its name sent.
        max_nbytes=1,
        # The same for every sharing of this process, so that joblib goes on with the same workers.
        initializer=begin,
        initargs=(os.getpid(),),
    )
    token, packed = uuid4().hex, _packed((work, common))
    answers = share(delayed(_answer)(token, packed, task) for task in tasks)
    try:
        yield from map(_result, answers)
    finally:
        # After an error, or where nobody asks any more, joblib gives up what is under way, and warns of that.
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
    """Shares tasks with the workers of a cluster, `workers` of them at a time."""
    there = _workers_of(client)
    most = ahead * there if workers >= there else workers
    token, rest, waiting = uuid4().hex, iter(tasks), deque[Any]()
    held = client.scatter(_packed((work, common)), broadcast=True, hash=False)
    try:
        while True:
            waiting.extend(
                client.submit(_answer, token, held, task, pure=False)
                for task in islice(rest, most - len(waiting))
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
            yield _result(answer)
    finally:
        if client.status == "running":
            client.cancel(list(waiting))


def _workers_of(client: "Client") -> int:
    """The number of worker processes, all of which compute what this process would."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        answers = client.run(_facts, on_error="return")
    except Exception as error:
        raise ClusterError(
            f"the cluster has no worker, or its scheduler has ended ({' '.join(str(error).split())}): start "
            "one with `dask worker ADDRESS --nthreads 1`"
        ) from error
    here = _facts()
    for address, there in answers.items():
        if isinstance(there, BaseException):
            raise ClusterError(f"the worker {address} cannot import this package: {there}")
        if there["process"] == here["process"]:
            raise ClusterError(
                "the workers of this cluster are threads of the process that sends them work, whose random "
                "numbers they would share: start it with LocalCluster(processes=True), or leave it out"
            )
        if there | {"process": here["process"]} != here:
            raise ClusterError(
                f"the worker {address} would compute other numbers than this process: it has {there}, and "
                f"this process {here}; install the same versions on both sides"
            )
    return len(answers)


def _facts() -> dict[str, str]:
    """The versions on which the numbers of a result depend, by name, and the name of the process."""
    from importlib.metadata import version

    names = ("rehearsal-torch", "torch", "numpy", "scipy")
    return {
        "process": _this_process,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in names},
    }


def _packed(value: object) -> np.ndarray:
    """What is sent to a worker, as bytes: tensors of other devices become tensors of the CPU."""
    from joblib.externals.loky.backend import reduction

    class Packing(reduction.get_loky_pickler()):  # type: ignore[misc]
        def reducer_override(self, value: object) -> Any:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                here = value.detach().cpu()
                if isinstance(value, torch.nn.Parameter):
                    here = torch.nn.Parameter(here, value.requires_grad)
                return here.__reduce_ex__(reduction.HIGHEST_PROTOCOL)
            inner = getattr(super(), "reducer_override", None)
            return NotImplemented if inner is None else inner(value)

    file = io.BytesIO()
    Packing(file).dump(value)
    return np.frombuffer(file.getbuffer(), dtype=np.uint8)


def _unpacked(packed: np.ndarray) -> Any:
    from joblib.externals.loky.backend import reduction

    return reduction.loads(packed.data)


def _answer(token: str, packed: np.ndarray, task: Any) -> tuple[Any, Exception | None]:
    """The result of a task in a worker, where nothing is shared again; or its error."""
    with _one_at_a_time, silent():
        # What was received before need not stay in memory while its successor is unpacked.
        if token not in _received:
            _received.clear()
            _received[token] = _unpacked(packed)
        work, common = _received[token]
        # A task may have left another number of threads, and the next one must not depend on that.
        torch.set_num_threads(1)
        _within.append(True)
        try:
            return work(common, task), None
        except Exception as error:
            error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
            return None, error
        finally:
            _within.pop()


def _result(answer: tuple[Any, Exception | None]) -> Any:
    result, error = answer
    if error is not None:
        raise error
    return result
