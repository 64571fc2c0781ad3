"""The memory of this process: resident bytes, sampled while something is repeated.

Memory counts as flat if the median of the last tenth of the samples exceeds that of the first tenth after a
warm-up by at most `ALLOWED`. The warm-up, a tenth of all samples, leaves out what is imported and kept on
first use. What glibc has freed and keeps is given back before each sample: it depends on the order of large
and small blocks, up to 46 MiB in 300 rounds whose models are 3 MiB. Linux alone tells the resident bytes.
"""

import ctypes
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

MIB = 2**20
# Growth in MiB that still counts as flat: a model of 300 trials, and parts of pages in use.
ALLOWED = 8.0
# Fewer samples say nothing about growth.
LEAST = 100


def resident() -> int:
    """The resident bytes of this process, without what it has freed."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(samples: Sequence[int]) -> dict[str, float | bool | None]:
    """First and last level of some samples, in MiB, and whether memory was flat.

    Args:
        samples: Resident bytes, in the order in which they were taken.

    Returns:
        ``first`` and ``last``: medians of the first tenth after the warm-up and of the last tenth; ``most``;
        ``flat``: None for fewer than `LEAST` samples.
    """
    tenth = max(1, len(samples) // 10)
    first = statistics.median(samples[tenth : 2 * tenth] or samples) / MIB
    last = statistics.median(samples[-tenth:]) / MIB
    return {
        "first": round(first, 2),
        "last": round(last, 2),
        "most": round(max(samples) / MIB, 2),
        "flat": last - first <= ALLOWED if len(samples) >= LEAST else None,
    }
