"""The length of a step in words: 1 hour where times are dates, 1 in COLUMN where they are numbers.

Dates count in days, so that an hour is a number such as 0.0416667, which says little without its unit. A
length is told in the largest of days, hours, minutes and seconds of which it is a whole number.

Source: ours.
"""

from rehearsal_torch.problems.episodes.roles import EpisodeRoles
from rehearsal_torch.problems.episodes.unit_rows import SECONDS_OF_A_DAY

UNITS = {"day": SECONDS_OF_A_DAY, "hour": 3600.0, "minute": 60.0, "second": 1.0}
ROUNDING = 1e-6


def step_text(length: float, dated: bool, roles: EpisodeRoles) -> str:
    """The length of a step with its unit, such as ``1 hour`` or ``1 in week``.

    Args:
        length: The length, in days for dates, else in the unit of the column of time.
        dated: Whether times are dates.
        roles: The name of the column of time, and what a step is called.
    """
    if dated:
        return time_text(length, dated)
    if length == 1 and roles.words.step:
        return f"1 {roles.words.step}"
    return f"{length:g} in {roles.time}"


def time_text(length: float, dated: bool) -> str:
    """A distance in time: with its unit for dates, such as ``90 minutes``, else as a number.

    Args:
        length: The distance, in days for dates.
        dated: Whether times are dates.
    """
    if not dated:
        return f"{length:g}"
    seconds = length * SECONDS_OF_A_DAY
    for unit, size in UNITS.items():
        count = seconds / size
        if round(count) and abs(count - round(count)) <= ROUNDING * max(1.0, abs(count)):
            return f"{round(count)} {unit}{'s' * (round(count) != 1)}"
    return f"{seconds:g} seconds"
