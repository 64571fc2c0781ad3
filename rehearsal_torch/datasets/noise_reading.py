"""Two readings of N(0, s): is s the variance or the standard deviation?

Papers print N(0, 0.1) and leave it open, and the probabilities that can be reached depend on it. A world says which it takes.

Source: Du et al. (2026), App. E: its tables fit the variance in linear worlds, the standard deviation in the others.
"""

import math


def deviation(printed: float, reading: str) -> float:
    """The standard deviation of N(0, printed).

    Args:
        printed: s.
        reading: "std" or "variance".

    Raises:
        ValueError: for another reading.
    """
    if reading not in ("std", "variance"):
        raise ValueError(f'noise: expected "std" or "variance"; got {reading!r}')
    return printed if reading == "std" else math.sqrt(printed)
