"""The memory of this process: resident bytes, sampled while something is repeated.

Memory counts as flat if the median of the last tenth of the samples exceeds that of the first tenth after a
warm-up by at most `ALLOWED`. The warm-up, a tenth of all samples, leaves out what is imported and kept on
first use. Linux alone tells the resident bytes in /proc.
"""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path

MIB = 2**20
# Growth in MiB that still counts as flat: allocators keep some of what was freed.
ALLOWED = 8.0
# Fewer samples say nothing about growth.
LEAST = 100


def resident() -> int:
    """The resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(samples: Sequence[int], allowed: float = ALLOWED) -> dict[str, float | bool | None]:
    """First and last level of some samples, in MiB, and whether memory was flat.

    Args:
        samples: Resident bytes, in the order in which they were taken.
        allowed: The growth in MiB that counts as flat.

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
        "flat": last - first <= allowed if len(samples) >= LEAST else None,
    }
