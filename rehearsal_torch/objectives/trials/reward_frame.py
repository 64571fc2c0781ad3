"""The affine frame in which a search compares rewards.

Tolerances of ascents and steps of fixed length are meant for values of the order of one. A reward may have
any scale: a pressure in pascals around 1e7, a concentration of 1e-6. A search works with

    (r - centre) / unit,

with centre 0 and unit 1 if the rewards are of the order of one, so that nothing changes for them, to the last
bit. Otherwise the centre is their median, and the unit the power of ten closest to their range.

Source: Gill, Murray and Wright (1981), Sec. 7.5 and 8.7 (well-scaled objective functions).
"""

import math
from dataclasses import dataclass

from torch import Tensor

# Ranges of rewards that are of the order of one, for tolerances of 1e-5 and less.
SMALL, LARGE = 1e-2, 1e6
# Distance from zero, in ranges of the rewards, beyond which the frame is centred to keep precision.
AWAY = 1e3


@dataclass(frozen=True)
class RewardFrame:
    """An affine map of rewards.

    Attributes:
        centre: The reward that maps to 0, in the reward's unit.
        unit: The difference of rewards that maps to 1, in the reward's unit.
    """

    centre: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, rewards: Tensor) -> "RewardFrame":
        """The frame for a sample of typical rewards, (n,); values that are not finite are ignored."""
        known = rewards[rewards.isfinite()]
        if not len(known):
            return cls()
        spread, middle = float(known.amax() - known.amin()), float(known.median())
        if not 0 < spread < math.inf:
            return cls(middle if abs(middle) > AWAY else 0.0, 1.0)
        unit = 1.0 if SMALL <= spread <= LARGE else 10.0 ** round(math.log10(spread))
        return cls(middle if abs(middle) > AWAY * spread else 0.0, unit)

    def standardised(self, rewards: Tensor) -> Tensor:
        """From the reward's unit to the frame, any shape."""
        return (rewards - self.centre) / self.unit

    def units(self, values: float) -> float:
        """From the frame to the reward's unit, for one value; the inverse of `standardised`."""
        return self.centre + self.unit * values
