"""Worker processes: they end with the process that started them.

A process that is killed cannot end its workers. Each worker therefore looks, twice a second, whether its
parent is still there, and ends where it is not; that works wherever processes have parents, and needs no word
from the parent.
"""

import os
import threading
import time

SECONDS = 0.5
_watched: list[int] = []


def end_with(parent: int) -> None:
    """Ends this process soon after its parent has ended; called again with the same parent, it does nothing.

    Args:
        parent: The parent's process id, as the parent gave it: a parent that is gone already is then noticed,
            too.
    """
    if parent == os.getpid() or parent in _watched:
        return
    _watched.append(parent)
    threading.Thread(target=_watch, args=(parent,), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS)
    os._exit(1)
