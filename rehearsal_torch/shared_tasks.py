"""Tasks that processes share: the one mechanism for rounds of decisions and for fits of folds and members.

    result_t = work(common, t),        t = 1 ... n, in this order

Who computes the results follows from the number of workers and from joblib's context:

    workers = 1, or one task         this process
    a Dask cluster in the context    its workers (`cluster.sharing`)
    otherwise                        processes of this machine (loky), each with one thread

What is common is sent to each process once; after that, only tasks and results travel. Tensors of a GPU are
sent as tensors of the CPU, where the workers compute: none of them opens the GPU. A result depends on
its two arguments alone: whatever is random in it is drawn from a seed that these determine. Results are
therefore equal to the last bit, whoever computes them. An error of a task is raised here, as it is, at the
place of its result; the trace of the worker is a note of it. A worker that is killed is an error as well:
nothing is silently computed elsewhere.

Within a task nothing is shared again: it asks for workers in vain, so that no process starts processes. Nor
does it show progress, of which the process that shares the tasks has a line.

**When sharing pays.** The first sharing of a process starts workers, each of which imports the packages; that
takes seconds (docs/results/scale). They stay for five minutes, and later sharings use them. Fits of a tenth
of a second are not worth that. Two rules decide, and neither changes a result:

    timed       the first task is computed here; the other n are shared if, each taking as long, they take
                at least `PAYS` = 10 s + 2 n (bytes of a result) / `TRAVELS`: two processes save half of
                that time, and more processes more than the rule believes
    an estimate of the caller, where the first task is too large a share of all (`training.fit`)

A cluster in the context is always used: it is there, and was asked for.

Source: ours; the processes are those of joblib and loky.
"""

import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import uuid4

import torch

from rehearsal_torch.cluster.sharing import named_cluster, shared_results
from rehearsal_torch.progress import silent
from rehearsal_torch.workers import begin

Common = TypeVar("Common")
Task = TypeVar("Task")
Result = TypeVar("Result")

# Seconds that the tasks after the first one must take, here and together, to be shared.
PAYS = 10.0
# Bytes of large results that a process makes and this one receives in a second: five candidate sets of 2,000,
# 4,000 and 16,000 rows took 1.5 to 2 s for each 250 MB longer than their fits and the start of processes.
TRAVELS = 1.3e8
# Tasks that are sent ahead for each process.
AHEAD = 4
# The token of what this process, a worker, has received last, and that.
_received: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {}
# Holds one entry while this process computes a task.
_within: list[bool] = []


def results(
    work: Callable[[Common, Task], Result],
    common: Common,
    tasks: Sequence[Task],
    workers: int,
    *,
    timed: bool = False,
    ahead: int = AHEAD,
    size: Callable[[Result], int] | None = None,
) -> Iterator[Result]:
    """The results work(common, task), in the order of the tasks.

    Args:
        work: Computes a result from its arguments alone.
        common: The first argument of all tasks.
        tasks: The second argument of each task; small.
        workers: The number of processes that share the tasks; within a cluster in joblib's context, of groups
            of tasks at a time.
        timed: Whether the first task is computed here, to see whether sharing pays; in a cluster, all of them
            are shared.
        ahead: How many tasks are sent ahead for each process: one, where they are long.
        size: The bytes of a result, if they are many; matters where tasks are timed.

    Yields:
        One result per task.

    Raises:
        ValueError: if `workers` is below 1.
        ClusterError: if joblib's context names a backend that cannot share tasks, or a cluster that cannot
            compute them.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    cluster = named_cluster() if workers > 1 and not _within else None
    if cluster is not None:
        return shared_results(cluster, _alone, (work, common), tasks, workers)
    return _of_this_machine(work, common, tasks, 1 if _within else workers, timed, ahead, size)


def worth(seconds: float, count: int, workers: int, size: int = 0) -> int:
    """The number of workers for further tasks, of which one has been computed: all that are there if it pays,
    or joblib's context names a cluster, else 1.

    Args:
        seconds: The time that one takes.
        count: The number of further tasks.
        workers: The number of workers that are there.
        size: The bytes of the result of one.
    """
    if workers > 1 and not _within and named_cluster() is not None:
        return workers
    return workers if seconds * count >= PAYS + 2 * count * size / TRAVELS else 1


def _of_this_machine(
    work: Callable[[Common, Task], Result],
    common: Common,
    tasks: Sequence[Task],
    workers: int,
    timed: bool,
    ahead: int,
    size: Callable[[Result], int] | None,
) -> Iterator[Result]:
    done = 0
    if timed and min(workers, len(tasks)) > 1:
        began = time.perf_counter()
        first = work(common, tasks[0])
        seconds, heavy = time.perf_counter() - began, 0 if size is None else size(first)
        done, workers = 1, worth(seconds, len(tasks) - 1, workers, heavy)
        yield first
        del first
    rest = tasks[done:]
    if min(workers, len(rest)) > 1:
        yield from _in_processes(work, common, rest, min(workers, len(rest)), ahead)
    else:
        yield from (work(common, task) for task in rest)


@dataclass(frozen=True)
class _Answer(Generic[Result]):
    """The result of a task, or its error."""

    result: Result | None
    error: Exception | None = None


def _in_processes(
    work: Callable[[Common, Task], Result], common: Common, tasks: Sequence[Task], workers: int, ahead: int
) -> Iterator[Result]:
    """Shares tasks with processes of this machine."""
    import numpy as np
    from joblib import Parallel, delayed

    # joblib writes an array that it meets in several tasks to a file in memory once, and sends its name.
    packed = np.frombuffer(_packed((work, common)), dtype=np.uint8)
    token = uuid4().hex
    share = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator",
        pre_dispatch=f"{ahead * workers}",
        batch_size=1,
        max_nbytes=1,
        # The same for every sharing of this process, so that joblib goes on with the same workers.
        initializer=begin,
        initargs=(os.getpid(),),
    )
    with _not_interrupted():
        answers = share(delayed(_answer)(token, packed, task) for task in tasks)
    try:
        for answer in answers:
            if answer.error is not None:
                raise answer.error
            yield answer.result
    finally:
        # After an error, or where nobody asks any more, joblib gives up what is under way, and warns of that.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            answers.close()


def on_cpu(value: Common) -> Common:
    """A copy in which all tensors are on the CPU, as workers are sent it.

    Args:
        value: Picklable, with whatever it holds.
    """
    from joblib.externals.loky.backend import reduction

    copied: Common = reduction.loads(_packed(value))
    return copied


def _packed(value: object) -> memoryview:
    """What is sent to a worker of this machine: tensors of other devices become tensors of the CPU."""
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
    return file.getbuffer()


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Processes that are started meanwhile are not reached by Ctrl-C, which a terminal sends to all of them:
    they end with this one, and would each write a traceback. This process is reached afterwards.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    # When it begins, it lets the signal through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(token: str, packed: Any, task: Any) -> _Answer[Any]:
    """The answer of a worker of this machine."""
    from joblib.externals.loky.backend import reduction

    # What was received before need not stay in memory while its successor is unpacked.
    if token not in _received:
        _received.clear()
        _received[token] = reduction.loads(memoryview(packed))
    # A task may have left another number of threads, and the next one must not depend on that.
    torch.set_num_threads(1)
    try:
        return _Answer(_alone(_received[token], task))
    except Exception as error:
        error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
        return _Answer(None, error)


def _alone(given: tuple[Callable[[Common, Task], Result], Common], task: Task) -> Result:
    """The result of a task in a worker, where nothing is shared again."""
    work, common = given
    _within.append(True)
    try:
        with silent():
            return work(common, task)
    finally:
        _within.pop()
