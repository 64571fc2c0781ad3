"""The watch over processes that share a training on GPUs, whose end NCCL does not tell.

Over gloo a lost connection is an error at once. Over NCCL the sum of all processes is a kernel on the GPU: it
waits for a process that has ended, and whoever synchronises with the GPU waits for the kernel. What ends such
kernels is the abort of the communicator:

    a peer ends with an error       a thread of rank 0 notes what the peer said, and aborts
    an error of rank 0 alone        the peers are killed, and rank 0 aborts: `destroy_process_group` waits for
                                    kernels, which wait for peers
    no error                        `destroy_process_group`

What an aborted kernel leaves are no sums, and nothing says so. The note is therefore made before the abort,
and `Watch.check` raises it: before the state of a training is written, and at its end.

`_abort_process_group` asks for ``TORCH_NCCL_ASYNC_ERROR_HANDLING=0`` (`unhandled`) where it is called. With
the default, 3, torch's own watchdog ends the process some time after an error. Peers keep the default: one
that waits in vain is ended, which rank 0 notices.

Source: torch 2.13, `distributed_c10d._abort_process_group`, and ProcessGroupNCCL (`abort`, `shutdown`, its
watchdog); ours.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch
from torch import distributed
from torch.distributed import distributed_c10d

HANDLING = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
MET = "met"
"""What a peer says when it has met the others and its GPU has room."""
POLL = 0.5
"""Seconds between two looks at the end of the watch."""
NOTICE = 2.0
"""How long an error waits for the end of another process, which may have caused it."""
LEAVING = 30.0
"""How long a process may take to end when it has closed what it had open: a GPU is left in seconds."""
LIMIT = 600.0
"""Seconds after an abort in which rank 0 must have come back from what it waits for."""


class EndedError(RuntimeError):
    """One of the processes of a training has ended before the others."""

    def __init__(self, world: int, said: str) -> None:
        super().__init__(
            f"one of the {world} processes of this training has ended ({said or 'it was killed'}): choose "
            "trainer.devices=1, or start again"
        )


def first_word(process: BaseProcess, here: Connection) -> str:
    """Waits for the next that a peer says; empty if it ends without a word."""
    try:
        while not here.poll(0.2) and process.is_alive():
            pass
        return str(here.recv()) if here.poll() else ""
    except (EOFError, OSError):
        return ""


def messages(here: Connection) -> Iterator[str]:
    """What a peer has said since it started."""
    try:
        while here.poll(1.0):
            yield str(here.recv())
    except (EOFError, OSError):
        return


def first_sum(device: int) -> Callable[[], None]:
    """The first sum of all processes, for which NCCL connects them.

    Args:
        device: The GPU of this process. It has to have room for a number, or an error says that it has none.
    """
    one = torch.zeros(1, device=torch.device("cuda", device))

    def add() -> None:
        distributed.all_reduce(one)
        torch.cuda.synchronize(device)

    return add


@contextmanager
def unhandled() -> Iterator[None]:
    """Leaves the errors of process groups that are made meanwhile to the watch."""
    before = os.environ.get(HANDLING)
    os.environ[HANDLING] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[HANDLING]
        else:
            os.environ[HANDLING] = before


class Watch:
    """Notes the first peer that ends with an error, and aborts what waits for it.

    Args:
        started: The peers, and what they say.

    Attributes:
        error: What has happened; None while nothing has.
    """

    def __init__(self, started: Sequence[tuple[BaseProcess, Connection]]) -> None:
        self.started = list(started)
        self.error: EndedError | None = None
        self._over, self._noted, self._one = threading.Event(), threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._look, name="watch-peers", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises the error, if there is one."""
        if self.error is not None:
            raise self.error

    def notice(self, seconds: float = NOTICE) -> None:
        """Waits for an error that a peer may have caused already."""
        self._noted.wait(seconds)

    def stop(self) -> None:
        """Ends the watch."""
        self._over.set()
        self._thread.join()

    def abort(self) -> None:
        """Ends the kernels that wait for other processes; does nothing where that is done."""
        with self._one:
            if distributed.is_initialized():
                distributed_c10d._abort_process_group()

    def _look(self) -> None:
        left = {process.sentinel: (process, here) for process, here in self.started}
        while left and not self._over.is_set():
            for sentinel in wait(list(left), timeout=POLL):
                assert isinstance(sentinel, int)
                process, here = left.pop(sentinel)
                process.join(LEAVING)
                if process.exitcode != 0 and not self._over.is_set():
                    self._end(next((each for each in messages(here) if each != MET), ""))
                    return

    def _end(self, said: str) -> None:
        self.error = EndedError(len(self.started) + 1, said)
        self._noted.set()
        last = threading.Timer(LIMIT, self._exit)
        last.daemon = True
        last.start()
        try:
            self.abort()
        finally:
            self._over.wait()
            last.cancel()
            last.join()

    def _exit(self) -> None:
        """Ends this process, which has not come back: an error that nobody can raise is still told."""
        print(f"{self.error}", file=sys.stderr, flush=True)
        os._exit(1)


@contextmanager
def watched(started: Sequence[tuple[BaseProcess, Connection]], device: int) -> Iterator[Callable[[], None]]:
    """Watches peers that have met over NCCL until the block ends, then takes the process group apart.

    Args:
        started: The peers, and what they say.
        device: The GPU of this process.

    Yields:
        Raises an error if a peer has ended with one: what came of sums since then means nothing.

    Raises:
        EndedError: if a peer ends before the others.
    """
    watch: Watch | None = None
    try:
        add = first_sum(device)
        for process, here in started:
            if (said := first_word(process, here)) != MET:
                raise EndedError(len(started) + 1, said)
        watch = Watch(started)
        add()
        yield watch.check
        watch.check()
        distributed.destroy_process_group()
        watch.stop()
    except BaseException as error:
        watch = _parted(watch, started, error)
        # An interruption stays one; whatever else was raised came of the end.
        if watch is None or watch.error in (None, error) or not isinstance(error, Exception):
            raise
        raise watch.error from error


def _parted(
    watch: Watch | None, started: Sequence[tuple[BaseProcess, Connection]], error: BaseException
) -> Watch | None:
    """Ends the peers and what waits for them, in this order, after an error of this process."""
    if watch is not None:
        if isinstance(error, RuntimeError):
            watch.notice()
        watch.stop()
    # Not ended by a signal that they could handle: Python handles none while it waits for a GPU.
    for process, _ in started:
        process.kill()
    try:
        if watch is not None:
            watch.abort()
        elif distributed.is_initialized():
            # Nothing has been summed, and no kernel waits.
            distributed.destroy_process_group()
    except Exception as other:
        error.add_note(f"The processes' connection could not be ended: {' '.join(str(other).split())[:300]}")
    return watch
