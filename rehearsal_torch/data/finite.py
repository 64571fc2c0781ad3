"""Values that may be compared: NaN and infinities are the worst of all.

`argmax`, `topk` and sorts take NaN for the largest value there is, so that one undefined value would win every comparison. Searches
therefore rank by `ranked`, under which a value that is no number loses against every number, and refuse where no number is left.

Source: IEEE 754 (2019), Sec. 5.11 (NaN is unordered).
"""

import torch
from torch import Tensor

UNDEFINED = "every value that the objective gave is NaN or infinite"


class NoFiniteValueError(ValueError):
    """No candidate has a finite value, so that there is nothing to choose."""


def ranked(values: Tensor) -> Tensor:
    """Values to compare by: those that are finite as they are, all others minus infinity; any shape."""
    return values.where(values.isfinite(), -torch.inf)


def best_of_all(values: Tensor) -> int:
    """The place of the largest finite value of (n,), the first of equals.

    Raises:
        NoFiniteValueError: if none is finite.
    """
    clean = ranked(values)
    place = int(clean.argmax()) if len(clean) else -1
    if place < 0 or not bool(clean[place].isfinite()):
        raise NoFiniteValueError(
            f"expected a finite value for at least one of {len(values)} candidates; {UNDEFINED}: look for extreme rows in the table, or rescale the variables"
        )
    return place
