"""Processes that share one training, by torch's distributed data parallelism: over gloo on the CPU, over NCCL
with a GPU each.

The calling process is rank 0: it reports, writes and keeps the weights. Its peers, ranks 1 ... world - 1, are
started for one training and end with it. They are spawned, not forked, since a forked process may deadlock in
the threads of its parent; and they get their arguments instead of the command line. All meet through a file.
If one of them ends before the others, gloo says so; over NCCL a watch does (`training.watch`).

Source: Li et al. (2020), PyTorch Distributed: experiences on accelerating data parallel training.
"""

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch import distributed, multiprocessing

from rehearsal_torch.training.watch import (
    MET,
    NOTICE,
    EndedError,
    first_sum,
    first_word,
    messages,
    unhandled,
    watched,
)
from rehearsal_torch.workers import end_with

PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before it gives up."""
SECONDS = 5.0
"""How long a process has to end by itself."""
STARTED = "started"


class _Ranked(LightningEnvironment):
    """The place of this process among processes that are there already."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    @property
    def creates_processes_externally(self) -> bool:
        """Whether Lightning starts none."""
        return True

    def local_rank(self) -> int:
        """The process, 0 ... world - 1."""
        return self.rank


def backend(used: Sequence[int]) -> str:
    """What the processes talk over.

    Args:
        used: The GPU of each process; empty on the CPU.
    """
    return "nccl" if used else "gloo"


def strategy(rank: int, used: Sequence[int] = ()) -> DDPStrategy:
    """Lightning's strategy of a process that has met the others.

    Args:
        rank: The process.
        used: The GPU of each process; empty on the CPU.
    """
    return DDPStrategy(
        cluster_environment=_Ranked(rank),
        process_group_backend=backend(used),
        gradient_as_bucket_view=True,
    )


@contextmanager
def peers(
    work: Callable[..., None], arguments: Sequence[tuple[Any, ...]], used: Sequence[int] = ()
) -> Iterator[Callable[[], None]]:
    """Meets processes that work on the same training, until the block ends.

    Args:
        work: A function of a module, called in peer i + 1 with its rank, the number of all processes and its
            arguments.
        arguments: The arguments of each peer. Tensors among them are shared and not copied: no other process
            may write to them.
        used: The GPU of each process, this one's first; empty on the CPU.

    Yields:
        Raises an error if a process has ended before the others, so that what is known of their sums means
        nothing. Over gloo the sum itself raises it.

    Raises:
        RuntimeError: if a process cannot be started, or ends before the others.
    """
    context = multiprocessing.get_context("spawn")
    world = len(arguments) + 1
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        started: list[tuple[BaseProcess, Connection]] = []
        try:
            for place, given in enumerate(arguments, 1):
                here, there = context.Pipe()
                process: BaseProcess = context.Process(
                    target=_peer, args=(place, world, meeting, there, work, given, tuple(used)), daemon=True
                )
                try:
                    process.start()
                except Exception as error:
                    raise RuntimeError(
                        f"process {place + 1} of {world} cannot be started for this training "
                        f"({' '.join(str(error).split())[:300]}): choose trainer.devices=1"
                    ) from error
                there.close()
                started.append((process, here))
            for each, here in started:
                _await(each, here, world)
            _meet(meeting, 0, world, used)
            with watched(started, used[0]) if used else _connected(started) as whole:
                yield whole
        finally:
            for each, here in started:
                each.join(SECONDS)
                if each.is_alive():
                    each.terminate()
                    each.join(SECONDS)
                if each.is_alive():
                    # Lightning handles the signal in Python, which a wait for a GPU does not come back to.
                    each.kill()
                    each.join()
                here.close()


@contextmanager
def _connected(started: Sequence[tuple[BaseProcess, Connection]]) -> Iterator[Callable[[], None]]:
    """What `training.watch.watched` is for NCCL, over gloo."""
    try:
        yield _nothing
    except RuntimeError as error:
        # A lost connection is noticed before the end of the process that has lost it.
        # One that is ending has closed what it had open, and counts as alive until it is taken down.
        ended = wait([process.sentinel for process, _ in started], timeout=NOTICE)
        said = [message for _, here in started for message in messages(here)]
        if not said and not ended:
            raise
        raise EndedError(len(started) + 1, said[0] if said else "") from error
    finally:
        distributed.destroy_process_group()


def _nothing() -> None:
    """What there is to check where an error is raised by itself."""


def _await(process: BaseProcess, here: Connection, world: int) -> None:
    """Waits until a peer has started.

    Raises:
        RuntimeError: if it has not.
    """
    message = first_word(process, here)
    if message != STARTED:
        raise RuntimeError(
            f"one of {world} processes could not start for this training ({message or 'it ended at once'}): "
            'a script of your own trains under `if __name__ == "__main__":`, since each process imports it; '
            "or choose trainer.devices=1"
        )


def _meet(meeting: str, rank: int, world: int, used: Sequence[int]) -> None:
    if used:
        torch.cuda.set_device(used[rank])
    with unhandled() if used and rank == 0 else nullcontext():
        distributed.init_process_group(
            backend(used), init_method=meeting, rank=rank, world_size=world, timeout=PATIENCE
        )


def _peer(
    rank: int,
    world: int,
    meeting: str,
    there: Connection,
    work: Callable[..., None],
    given: tuple[Any, ...],
    used: Sequence[int],
) -> None:
    """What a peer runs."""
    # An interruption reaches rank 0 as well, which ends its peers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = parent_process()
    if used and parent is not None and parent.pid is not None:
        # A process that waits for a GPU does not notice that the first one was killed.
        end_with(parent.pid)
    there.send(STARTED)
    try:
        _meet(meeting, rank, world, used)
        if used:
            add = first_sum(used[rank])
            there.send(MET)
            add()
        work(rank, world, *given)
    except BaseException as error:
        there.send(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        # Rank 0 says what went wrong.
        os._exit(1)
    distributed.destroy_process_group()
