"""Point estimates with intervals, net values that follow from them, and how both are written.

An estimate of a probability p with the interval [l, u], a worth v and a cost c give the net value v p - c,
with the interval [v l - c, v u - c]: the cost of an action is known.

Sentences have chances in per cent, with their intervals, and differences in percentage points.

    21 % (95% interval 12 % to 30 %)      62 % (51 % to 72 %)      41 percentage points (27 to 54)

A chance p is written in whole numbers. One decimal is taken below 10 % and above 90 % where two numbers of an
estimate would be written alike, and for all of them where they would be one and the same. Only what is
exactly 0 or 1 is written 0 % or 100 %: what rounds to these is under 1 % or over 99 %. Two chances and their
difference have as many decimals as it takes for the difference to be that of the chances as they are written
(`decimals`). Tables and files keep three decimals, or all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

CHANCE = "probability of a desired outcome"  # What the estimate of a rehearsal method is of.
# What the estimate of a comparison is of.
DIFFERENCE = "difference of the probabilities of a desired outcome"
# What a decision nets where costs count.
NET_VALUE, NET_GAIN = "net value", "net value above that of changing nothing"


Record = TypeVar("Record")


def copied(record: Any, kind: type[Record] | None = None, **fields: Any) -> Record:
    """A frozen record with other, unchecked fields: far faster than `dataclasses.replace`."""
    copy: Record = object.__new__(kind or type(record))
    object.__setattr__(copy, "__dict__", record.__dict__ | fields)
    return copy


@dataclass(frozen=True)
class Estimate:
    """A point estimate of the quantity `of` ("probability of a desired outcome", "return", ...), optionally
    with an interval of a nominal coverage `level`. A ValueError if a number is not finite, lower <= point <=
    upper does not hold, or only some of lower, upper and level are given.
    """

    point: float
    of: str
    lower: float | None = None
    upper: float | None = None
    level: float | None = None

    def __post_init__(self) -> None:
        ends = (self.lower, self.upper, self.level)
        numbers = [self.point, *(end for end in ends if end is not None)]
        if len(numbers) not in (1, 4):
            raise ValueError(f"an interval has lower, upper and level, or none of them; got {ends}")
        if not all(map(math.isfinite, numbers)):
            expected = f"expected finite numbers for the {self.of}"
            raise ValueError(f"{expected}; got {numbers}: leave the estimate out if there is none")
        if self.lower is not None and self.upper is not None and not self.lower <= self.point <= self.upper:
            values = f"{self.lower}, {self.point}, {self.upper}"
            raise ValueError(f"expected lower <= point <= upper; got {values}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``lower``, ``upper`` and ``level`` only if there is an interval."""
        interval = {"lower": self.lower, "upper": self.upper, "level": self.level}
        return {"point": self.point, "of": self.of, **({} if self.lower is None else interval)}


def net(
    estimate: Estimate | None, worth: float | None, cost: float | None, of: str, less: float = 0.0
) -> Estimate | None:
    """worth p - cost - less, p a probability or a difference, with its interval; None if one is unknown."""
    if estimate is None or worth is None or cost is None:
        return None
    point, lower, upper = (
        None if value is None else round(worth * value - (cost + less), 9)
        for value in (estimate.point, estimate.lower, estimate.upper)
    )
    assert point is not None
    return Estimate(point, of, lower, upper, estimate.level)


Ends = tuple[float, float] | None
_LOW, _HIGH = 0.1, 0.9  # Between these, whole numbers are enough.


def percents(values: Sequence[float], fine: int = 0) -> list[str]:
    """Chances of one sentence, a point with its ends, in `fine` decimals; 0 for as few as will do."""
    integers = [_percent(value, 0) for value in values]
    if fine or (len(set(values)) > 1 and len(set(integers)) == 1):
        return [_percent(value, max(1, fine)) for value in values]
    extreme = [value for value in values if not _LOW <= value <= _HIGH]
    hidden = any(alike(value, second) for value in extreme for second in values)
    return [
        _percent(value, 1) if hidden and value in extreme else text
        for value, text in zip(values, integers, strict=True)
    ]


def percent(value: float) -> str:
    """One chance alone, such as ``62 %``."""
    return percents([value])[0]


def beside(one: float, other: float) -> str:
    """Two chances that are compared, such as ``31 % against 62 %``."""
    return " against ".join(percents([one, other], alike(one, other)))


def alike(one: float, other: float) -> bool:
    """Whether whole numbers would hide that two chances differ."""
    return one != other and _percent(one, 0) == _percent(other, 0)


def decimals(before: Sequence[float], after: Sequence[float], gain: Sequence[float] = ()) -> int:
    """How many decimals two chances and, if written, their difference need (`fine` of `percents`), so that
    neither hides the other; each is a point, with the ends of its interval if it has one.
    """
    fewest = int(alike(before[0], after[0]))
    if not gain:
        return fewest
    texts = [percents(before)[0], percents(after)[0], points(gain)[0]]
    fewest = max(fewest, int(any("." in text for text in texts)))
    numbers = (before[0], after[0], gain[0])
    return next((digits for digits in (0, 1, 2)[fewest:] if _adds_up(*numbers, digits)), fewest)


def apart(one: float, other: float, digits: int = 2) -> tuple[str, str]:
    """Two numbers that are compared, with at least so many decimals, and as many as show that they differ."""
    for places in range(digits, 16):
        if (first := f"{one:.{places}f}") != (second := f"{other:.{places}f}"):
            return first, second
    return f"{one:.{digits}f}", f"{other:.{digits}f}"


class Intervals:
    """Estimates of one sentence with intervals in brackets; a level is repeated only if it changes."""

    def __init__(self) -> None:
        self._said: float | str | None = None

    def chance(self, point: float, ends: Ends = None, level: float | None = None, fine: int = 0) -> str:
        """A chance with its interval, such as ``62 % (95% interval 51 % to 72 %)``."""
        texts = percents([point, *(ends or ())], fine)
        return f"{texts[0]}{self._brackets(texts[1:], level)}"

    def difference(self, point: float, ends: Ends = None, level: float | None = None, fine: int = 0) -> str:
        """A difference of chances with its interval, such as ``41 percentage points (27 to 54)``."""
        texts = points([point, *(ends or ())], fine)
        unit = "point" if texts[0] in ("1", "-1") else "points"
        return f"{texts[0]} percentage {unit}{self._brackets(texts[1:], level)}"

    def plain(self, point: float, ends: Ends = None, level: float | None = None, fine: int = 0) -> str:
        """An estimate of something else, in four significant digits; six if it is `fine`."""
        texts = [f"{value:.{6 if fine else 4}g}" for value in [point, *(ends or ())]]
        return f"{texts[0]}{self._brackets(texts[1:], level)}"

    def _brackets(self, ends: Sequence[str], level: float | None) -> str:
        if not ends:
            return ""
        name = "interval " if level is None else f"{100 * level:g}% interval "
        repeated, self._said = self._said == name, name
        return f" ({'' if repeated else name}{ends[0]} to {ends[1]})"


def chance_of(estimate: Estimate, intervals: Intervals | None = None, fine: int = 0) -> str:
    """An estimate in words: a chance in per cent, anything else as a number."""
    writer, ends = intervals or Intervals(), ends_of(estimate)
    if is_chance(estimate.of):
        return writer.chance(estimate.point, ends, estimate.level, fine)
    return writer.plain(estimate.point, ends, estimate.level)


def change(value: float, of: str) -> str:
    """A difference with its sign, such as ``+4.1 percentage points``; of anything but chances a number."""
    return f"{100 * value:+.1f} percentage points" if is_chance(of) else f"{value:+.3g}"


def ends_of(estimate: Estimate) -> Ends:
    """The interval of an estimate; None without one."""
    if estimate.lower is None or estimate.upper is None:
        return None
    return estimate.lower, estimate.upper


def is_chance(of: str) -> bool:
    """Whether a quantity is a probability or a difference of two, and written in per cent."""
    return "probabilit" in of


def in_words(of: str, wanted: str = "") -> str:
    """A quantity as sentences name it, such as ``chance that progression is at most 140``."""
    if wanted:
        of = of.replace(CHANCE, f"chance that {wanted}")
    return of.replace("probability of a", "chance of a")


def _percent(value: float, digits: int) -> str:
    text, step = f"{100 * value:.{digits}f}", 10.0**-digits
    if value > 0 and float(text) == 0:
        return f"under {step:.{digits}f} %"
    if value < 1 and float(text) == 100:
        return f"over {100 - step:.{digits}f} %"
    return f"{text} %"


def points(values: Sequence[float], fine: int = 0) -> list[str]:
    """Differences in percentage points, without the unit, in as few decimals as show a difference."""
    texts = list[str]()
    for digits in range(min(fine, 2), 3):
        texts = [f"{round(100 * value, digits) + 0.0:.{digits}f}" for value in values]
        vanished = any(value and not float(text) for value, text in zip(values, texts, strict=True))
        if not vanished and (len(set(values)) == 1 or len(set(texts)) > 1):
            break
    return texts


def _adds_up(before: float, after: float, gain: float, digits: int) -> bool:
    first, second, difference = (float(f"{100 * number:.{digits}f}") for number in (before, after, gain))
    return abs(second - first - difference) < 1e-6
