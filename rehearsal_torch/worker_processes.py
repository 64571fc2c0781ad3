"""Worker processes of this machine, with one thread each, that end with the process that started them.

A killed process cannot end its workers. Each worker therefore checks twice a second whether its parent still
exists, and exits if not. Torch is imported once a worker begins: commands check their arguments without it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 0.5
_parents: list[int] = []


def begin(parent: int) -> None:
    """Initialises a worker of joblib, started by the process `parent`."""
    import torch
    from joblib.externals.loky import process_executor

    end_with(parent)
    # A terminal sends Ctrl-C to all processes, and each would write a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Where psutil is installed, loky takes 300 MB more than after the first task for a leak, and starts the
    # process again, with a warning; a fitted model may have as much.
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    torch.set_num_threads(1)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Sets torch's number of threads, and restores it afterwards."""
    import torch

    previous = torch.get_num_threads()
    torch.set_num_threads(previous if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


def end_with(parent: int) -> None:
    """Ends this process soon after its parent, which passes its own id in case it has already ended."""
    if parent == os.getpid() or parent in _parents:
        return
    _parents.append(parent)
    threading.Thread(target=_exit_after, args=(parent,), name="end-with-parent", daemon=True).start()


def _exit_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(1)
