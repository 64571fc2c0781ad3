"""Point estimates with intervals, and net values that follow from them.

An estimate of a probability p with the interval [l, u], a worth v and a cost c give the net value v p - c,
with the interval [v l - c, v u - c]: the cost of an action is known.
"""

import math
from dataclasses import dataclass
from typing import Any

# What the estimate of a rehearsal method is of.
CHANCE = "probability of a desired outcome"
# What the estimate of a comparison is of.
DIFFERENCE = "difference of the probabilities of a desired outcome"
# What a decision nets where costs count.
NET_VALUE, NET_GAIN = "net value", "net value above that of changing nothing"


@dataclass(frozen=True)
class Estimate:
    """A point estimate of a method, optionally with an interval.

    Attributes:
        point: The estimate.
        of: The estimated quantity, in words: "probability of a desired outcome", "return", ...
        lower: Lower end of the interval; None without an interval.
        upper: Upper end of the interval; None without an interval.
        level: The nominal coverage probability of the interval; None without an interval.

    Raises:
        ValueError: if a number is not finite, lower <= point <= upper does not hold, or only some of lower,
            upper and level are given.
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
            raise ValueError(
                f"expected finite numbers for the {self.of}; got {numbers}: leave the estimate out if there "
                "is none"
            )
        if self.lower is not None and self.upper is not None and not self.lower <= self.point <= self.upper:
            raise ValueError(
                f"expected lower <= point <= upper; got {self.lower}, {self.point}, {self.upper}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: ``point``, ``of``, and ``lower``, ``upper``, ``level`` if there is an
        interval.
        """
        interval = (
            {} if self.lower is None else {"lower": self.lower, "upper": self.upper, "level": self.level}
        )
        return {"point": self.point, "of": self.of, **interval}


def net(
    estimate: Estimate | None, worth: float | None, cost: float | None, of: str, less: float = 0.0
) -> Estimate | None:
    """worth p - cost - less, with the interval of p; None where one of them is unknown.

    Args:
        estimate: A probability p, or a difference of two.
        less: What is taken off as well.
    """
    if estimate is None or worth is None or cost is None:
        return None
    scale = worth, cost + less
    point = _on(estimate.point, *scale)
    if estimate.lower is None or estimate.upper is None:
        return Estimate(point, of)
    return Estimate(point, of, _on(estimate.lower, *scale), _on(estimate.upper, *scale), estimate.level)


def _on(probability: float, worth: float, less: float) -> float:
    return round(worth * probability - less, 9)
