"""In what unit, and counted from where, a search compares rewards.

Tolerances of ascents and steps of fixed length are meant for values of the order of one. A reward may lie
anywhere: a pressure in pascals around 1e7, a concentration of 1e-6. What a search sees is

    (r - centre) / unit,

with centre 0 and unit 1 where the rewards are of that order, so that nothing changes there, to the last bit.
Elsewhere the centre is their median, and the unit the power of ten next to their range.

Source: Gill, Murray and Wright (1981), Sec. 7.5 and 8.7 (well-scaled objective functions).
"""

import math
from dataclasses import dataclass

from torch import Tensor

# Ranges of rewards that are of the order of one, for tolerances of 1e-5 and less.
SMALL, LARGE = 1e-2, 1e6
# So many ranges may rewards lie away from zero before their digits count.
AWAY = 1e3


@dataclass(frozen=True)
class RewardFrame:
    """An affine map of rewards.

    Attributes:
        centre: What becomes 0, in the reward's unit.
        unit: What becomes 1, in the reward's unit.
    """

    centre: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, rewards: Tensor) -> "RewardFrame":
        """The frame of some rewards (n,) that are typical; those that are not finite are left out."""
        known = rewards[rewards.isfinite()]
        if not len(known):
            return cls()
        spread, middle = float(known.amax() - known.amin()), float(known.median())
        if not 0 < spread < math.inf:
            return cls(middle if abs(middle) > AWAY else 0.0, 1.0)
        unit = 1.0 if SMALL <= spread <= LARGE else 10.0 ** round(math.log10(spread))
        return cls(middle if abs(middle) > AWAY * spread else 0.0, unit)

    def seen(self, rewards: Tensor) -> Tensor:
        """Rewards as a search sees them, any shape."""
        return (rewards - self.centre) / self.unit

    def units(self, values: float) -> float:
        """The inverse of `seen`, for one value."""
        return self.centre + self.unit * values
