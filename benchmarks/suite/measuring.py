"""Two ways to do the same work, measured in turns in one process.

A repetition runs the package, then the reference, each as often as fills `FLOOR` seconds. Measured are
process seconds of all threads, so that other programs on the machine count little; garbage is collected
before, not within, and what was there before the row is left out of that. Reported are medians, and the ratio
of medians (above one: the package is faster) with a percentile bootstrap over repetitions, both sides of a
repetition resampled together, since they ran side by side.

Memory is the largest resident set during one call, less the resident set before it, after freed pages
have been returned to the system. Linux counts it (``/proc/self/clear_refs``); elsewhere it is not measured.
It is accurate to some 0.1 MB.

After the times, matrix arithmetic of one more call of the package is counted (`suite.operations`).

Source: Efron and Tibshirani (1993), Ch. 13 (percentile intervals).
"""

import ctypes
import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.suite.operations import operations

FLOOR, MOST_CALLS = 0.02, 500
# A first call of more seconds counts as a repetition.
LONG = 0.8
RESAMPLES = 2000


@dataclass(frozen=True)
class Timed:
    """The result of a side that measured its own seconds, such as those of an epoch without the first.

    Attributes:
        result: What was computed.
        seconds: Process seconds that count.
    """

    result: Any
    seconds: float


@dataclass(frozen=True)
class Quality:
    """What both sides reached, judged in the same way.

    Attributes:
        name: What it is, with unit.
        ours: Of the package.
        theirs: Of the reference.
        tolerance: Largest difference that counts as equal; None where the two are not meant to be equal.
        because: Why they may differ by so much, or why they are not meant to be equal.
        higher: Whether larger is better.
    """

    name: str
    ours: float
    theirs: float
    tolerance: float | None
    because: str
    higher: bool = True

    @property
    def verdict(self) -> str:
        """Equal, better or worse, seen from the package."""
        apart = self.ours - self.theirs
        if abs(apart) <= (self.tolerance or 0.0):
            return "equal"
        return "better" if (apart > 0) == self.higher else "worse"


@dataclass(frozen=True)
class Contest:
    """One row: the same work done twice.

    Attributes:
        ours: The package's way; returns what `quality` judges, or a `Timed`.
        theirs: The reference's way.
        quality: Judges both results.
        repeat: Number of repetitions; None takes that of the command.
        facts: Further numbers of both results, such as expanded nodes.
        units: How many of what is timed one call of the package does, such as epochs, where it times itself;
            0 where its arithmetic is not counted.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    quality: Callable[[Any, Any], Quality]
    repeat: int | None = None
    facts: Callable[[Any, Any], dict[str, Any]] = field(default=lambda ours, theirs: {})  # noqa: ARG005
    units: int = 1


def measured(contest: Contest, repeat: int) -> dict[str, Any]:
    """Times both sides in turns.

    Args:
        contest: The row.
        repeat: Number of repetitions, unless the row has its own.

    Returns:
        ``ours_ms`` and ``theirs_ms`` (medians), ``ratio`` with ``low`` and ``high``, ``ours_mb`` and
        ``theirs_mb`` (None where memory cannot be measured), ``quality``, ``operations`` of the package by
        precision (None if not counted), ``repetitions`` and all times.
    """
    gc.collect()
    gc.freeze()
    try:
        return _measured(contest, repeat)
    finally:
        gc.unfreeze()


def _measured(contest: Contest, repeat: int) -> dict[str, Any]:
    (first_ours, ours), ours_mb = with_memory(contest.ours)
    (first_theirs, theirs), theirs_mb = with_memory(contest.theirs)
    wanted = repeat if contest.repeat is None else contest.repeat
    long = min(first_ours, first_theirs) > LONG
    spent: list[tuple[float, float]] = [(first_ours, first_theirs)] if long else []
    if not long:
        # The first calls have filled caches that stay: memory is that of a later call.
        (_, ours), ours_mb = with_memory(contest.ours)
        (_, theirs), theirs_mb = with_memory(contest.theirs)
    calls = [_calls(contest.ours, first_ours), _calls(contest.theirs, first_theirs)]
    while len(spent) < wanted:
        one, _ = timed(contest.ours, calls[0])
        other, _ = timed(contest.theirs, calls[1])
        spent.append((one, other))
    times = 1e3 * np.array(spent)
    ratio, low, high = ratio_of_medians(times)
    quality, facts = contest.quality(ours, theirs), contest.facts(ours, theirs)
    units = contest.units
    return {
        "ours_ms": float(np.median(times[:, 0])),
        "theirs_ms": float(np.median(times[:, 1])),
        "ratio": ratio,
        "low": low,
        "high": high,
        "ours_mb": ours_mb,
        "theirs_mb": theirs_mb,
        "quality": {
            "name": quality.name,
            "ours": quality.ours,
            "theirs": quality.theirs,
            "tolerance": quality.tolerance,
            "because": quality.because,
            "verdict": quality.verdict,
        },
        "facts": facts,
        "operations": {name: count / units for name, count in operations(contest.ours).items()}
        if units
        else None,
        "repetitions": len(spent),
        "calls": calls,
        "times_ms": times.round(6).tolist(),
    }


def timed(call: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Process seconds of a call, the mean over several, and the result of the last one."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        for _ in range(times):
            result = call()
        seconds = (time.process_time() - began) / times
    finally:
        gc.enable()
    return (result.seconds, result.result) if isinstance(result, Timed) else (seconds, result)


def ratio_of_medians(times: np.ndarray, seed: int = 0) -> tuple[float, float, float]:
    """The reference's median over the package's, with a 95 % interval.

    Args:
        times: (n, 2), the package's and the reference's time of each repetition.
        seed: Seed of the resamples.

    Returns:
        Ratio, lower and upper end.
    """
    drawn = np.random.default_rng(seed).integers(0, len(times), (RESAMPLES, len(times)))
    medians = np.median(times[drawn], 1)
    low, high = np.quantile(medians[:, 1] / medians[:, 0], [0.025, 0.975])
    whole = np.median(times, 0)
    return float(whole[1] / whole[0]), float(low), float(high)


def slope(sizes: list[float], times: list[float]) -> float:
    """The exponent b of time ~ size^b, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def factor(sizes: list[float], times: list[float]) -> float:
    """The factor c of time ~ c^size, by least squares on the logarithms of times."""
    return float(np.exp(np.polyfit(sizes, np.log(times), 1)[0]))


def with_memory(call: Callable[[], Any]) -> tuple[tuple[float, Any], float | None]:
    """Seconds and result of a call, and its peak resident megabytes beyond those before it; None where the
    system does not count them.
    """
    clear = Path("/proc/self/clear_refs")
    if not clear.exists():
        return timed(call, 1), None
    gc.collect()
    _return_pages()
    before = _status("VmRSS")
    clear.write_text("5")
    found = timed(call, 1)
    return found, max(_status("VmHWM") - before, 0.0) / 1024


def _calls(call: Callable[[], Any], first: float) -> int:
    """How many calls fill a repetition: the first call may have been slower than the later ones."""
    if first > FLOOR:
        return 1
    again, _ = timed(call, 3)
    return min(MOST_CALLS, max(1, math.ceil(FLOOR / max(again, 1e-7))))


def _status(name: str) -> float:
    """A line of /proc/self/status, in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def _return_pages() -> None:
    """Gives freed pages back, with the C library of GNU."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
