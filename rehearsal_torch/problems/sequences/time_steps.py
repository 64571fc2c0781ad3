"""Step numbers of rows: which time step of its unit each row falls into.

Time is a number, or a date, which counts in days. Without a length of a step in the task, rows are steps: the
most frequent distance between two rows of a unit is that of a step, and its multiples are gaps. Where that is
not so, dates on one day of successive months (on the last of those that have no such day) are calendar
months; or clocks jitter: a step is the median of the most distances within a tenth of their middle, and a
distance lies up to a tenth of a step beside a multiple. All else is a fault.

With a length h, step t of a unit holds its rows with

    t h < time - first + m / 2 <= (t + 1) h,        m the median distance of rows, at most h:

rows about h apart belong to the nearest multiple of h, one halfway to the earlier; of rows at equal, smaller
distances each step has h / m. ``month`` and ``week`` are those of the calendar (weeks begin on Monday), by
UTC where dates have an offset.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.cell_values import dates_of

# Steps of the calendar, of dates.
Calendar = Literal["month", "week"]
SECONDS_OF_A_DAY = 86400.0
SLACK = 1e-6  # The share of a step by which a row may lie beside its time without a word.
JITTER = 0.1  # That by which the distance of two rows may lie beside a multiple of a step.
MONTH = 365.2425 / 12  # In days, on average.


def in_days(column: pd.Series) -> bool:
    """Whether a column of time is read as dates, which count in days."""
    return not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)


def times_of(column: pd.Series) -> np.ndarray:
    """Time as numbers, (n,): dates (`data.tables.cell_values.dates_of`) in days; NaN where a cell is
    neither.
    """
    if not in_days(column):
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    dates = dates_of(column)
    present = dates.notna().to_numpy()
    time = np.full(len(column), np.nan)
    elapsed = dates[present] - pd.Timestamp("1970-01-01", tz="UTC")
    time[present] = elapsed.dt.total_seconds().to_numpy(np.float64) / SECONDS_OF_A_DAY
    return time


def actionless(frame: pd.DataFrame, units: np.ndarray, time: np.ndarray, acts: Sequence[str]) -> np.ndarray:
    """Mask of rows that are the last of their unit and have none of the actions, (n,) bool."""
    last = pd.Series(time).groupby(units).transform("max").to_numpy() == time
    return last & frame[list(acts)].isna().all(axis=1).to_numpy()


@dataclass(frozen=True)
class Numbered:
    """The step of each row since the first of its unit, (n,) int64; a step's length; and masks of the rows at
    no whole number of steps from the one before, or only within `JITTER`, (n,) bool.
    """

    steps: np.ndarray
    length: float
    odd: np.ndarray
    beside: np.ndarray


def numbered(
    time: np.ndarray, begins: np.ndarray, step: float | Calendar | None, dated: bool, known: float = 0.0
) -> Numbered:
    """The steps of sorted rows, (n,), where `begins` marks first rows of units; without a `step`, of the
    `known` length, or if that is 0 of the most frequent distance.
    """
    first = np.maximum.accumulate(np.where(begins, np.arange(len(time)), 0))
    distances, nothing = np.diff(time, prepend=time[0]), np.zeros(len(time), dtype=bool)
    if step is None and dated and known == MONTH:
        step = "month"
    if isinstance(step, str):
        number = np.floor((time + 3) / 7) if step == "week" else _days(time).astype("M8[M]").astype(float)
        number = (number - number[first]).astype(np.int64)
        return Numbered(number, MONTH if step == "month" else 7.0, nothing, nothing)
    if step is not None:
        median = min(step, float(np.median(distances[~begins]))) if not begins.all() else step
        index = np.floor((time - time[first] + median / 2) / step - SLACK)
        return Numbered(index.clip(0, 2**40).astype(np.int64), step, nothing, nothing)
    length = known or usual_distance(distances[~begins], SLACK)
    steps_apart = np.where(begins, 0.0, distances / length)
    uneven = _off_multiple(steps_apart, SLACK * np.maximum(1.0, steps_apart)) & ~begins
    beside = nothing
    if uneven.any():
        if dated and not known and _is_monthly(time, begins):
            return numbered(time, begins, "month", dated)
        length = known or usual_distance(distances[~begins], JITTER)
        steps_apart = np.where(begins, 0.0, distances / length)
        uneven = _off_multiple(steps_apart, JITTER) & ~begins
        beside = _off_multiple(steps_apart, SLACK * np.maximum(1.0, steps_apart)) & ~begins & ~uneven
    total = np.minimum(steps_apart.round(), 2**40).astype(np.int64).cumsum()
    return Numbered(total - total[first], length, uneven, beside)


def _off_multiple(steps_apart: np.ndarray, slack: float | np.ndarray) -> np.ndarray:
    """Which distances, in steps, are no whole number of at least one."""
    return (np.abs(steps_apart - steps_apart.round()) > slack) | (steps_apart < 0.5)


def _days(time: np.ndarray) -> np.ndarray:
    """Days since 1970 as dates."""
    return (time * SECONDS_OF_A_DAY).round().astype("M8[s]").astype("M8[D]")


def _is_monthly(time: np.ndarray, begins: np.ndarray) -> bool:
    """Whether the rows of each unit are on one day of mostly successive months, or on the last."""
    day = _days(time)
    month = day.astype("M8[M]")
    last = ((month + 1).astype("M8[D]") - month.astype("M8[D]")).astype(int)
    day_of_month = (day - month.astype("M8[D]")).astype(int) + 1
    due = np.maximum.reduceat(day_of_month, np.flatnonzero(begins))[begins.cumsum() - 1]
    months_apart = np.diff(month.astype(int), prepend=0)[~begins]
    return bool((day_of_month == np.minimum(due, last)).all() and np.median(months_apart) == 1)


def step_for(length: float, dated: bool) -> str:
    """A length of step that merges rows about so far apart, as a task writes it."""
    return "month" if dated and 28.5 <= length <= 33 else f"{length:.12g}"


def usual_distance(apart: np.ndarray, share: float) -> float:
    """The median of the most distances, the smallest of ties, that lie within a share of their middle."""
    ordered = np.sort(apart)
    counts = np.searchsorted(ordered, ordered * (1 + share) / (1 - share), "right") - np.arange(len(ordered))
    begin = int(counts.argmax())
    return float(np.median(ordered[begin : begin + counts[begin]]))


UNITS = {"day": SECONDS_OF_A_DAY, "hour": 3600.0, "minute": 60.0, "second": 1.0}
ROUNDING = 0.01


def time_text(length: float, dated: bool) -> str:
    """A distance in time: a number; of dates, in the largest unit of which it is (nearly) a whole number."""
    if not dated:
        return f"{length:g}"
    if length == MONTH:
        return "1 month"
    seconds = length * SECONDS_OF_A_DAY
    for unit, size in UNITS.items():
        count = seconds / size
        if round(count) and abs(count - round(count)) <= ROUNDING * max(1.0, abs(count)):
            return f"{round(count)} {unit}{'s' * (round(count) != 1)}"
    return f"{seconds:g} seconds"


def moment_text(time: float, dated: bool) -> str:
    """A time of the table, dates in ISO 8601; empty for NaN."""
    if np.isnan(time):
        return ""
    if not dated:
        return f"{time:.12g}"
    moment = np.datetime64(round(time * SECONDS_OF_A_DAY * 1000), "ms")
    return str(moment).removesuffix(".000").removesuffix("T00:00:00")
