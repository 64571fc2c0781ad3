"""The memory that is free, and what fits to many rows take of it, in bytes.

A fit keeps the rows, their ranks and some features of blocks at the same time: measured at the peak of
`rehearsal decide`, 270 bytes for each cell of a table of cases (500,000 rows of 5 columns, the default
method), and 40 for each of the steps of sequences, which are kept in single precision.
"""

import os
from contextlib import suppress
from pathlib import Path

PER_CELL = {"rehearse": 270, "look_back": 40}
_MEMINFO, _LIMIT, _USED = (
    Path(name) for name in ("/proc/meminfo", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
)


def free() -> int | None:
    """The bytes that this process may still take; None where the system does not say."""
    amounts = []
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        amounts.append(1024 * int(lines["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        if "SC_AVPHYS_PAGES" in os.sysconf_names:
            amounts.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    # A container's limit is the word max where it has none.
    with suppress(OSError, ValueError):
        amounts.append(int(_LIMIT.read_text()) - int(_USED.read_text()))
    return min(amounts, default=None)


def memory_note(kind: str, rows: int, columns: int) -> str:
    """A sentence where fits to so many rows take more than half of the free memory; else empty."""
    needed, available = PER_CELL.get(kind, 0) * rows * columns, free()
    if available is None or needed <= available / 2:
        return ""
    return (
        f"fits to {rows:,} rows of {columns} columns take about {needed / 1e9:.1f} GB, more than half of the "
        f"{available / 1e9:.1f} GB of memory that are free: decide by a sample of the rows, or close other "
        "programs"
    )
