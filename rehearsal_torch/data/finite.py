"""Values that may be compared: NaN and infinities are the worst of all.

`argmax`, `topk` and sorts take NaN for the largest value there is, so that one undefined value would win
every comparison. Searches therefore rank by `ranked`, under which a value that is no number loses against
every number, and refuse where no number is left.

Source: IEEE 754 (2019), Sec. 5.11 (NaN is unordered).

Arithmetic that ends in no number: said of the rows it came from, whichever library found it.

Rows of very different size, values that copy each other, or a checkpoint that was edited can leave a method
without a finite number. What is raised then differs from library to library; for whoever asked it is the
same, and it is no fault of the program.

Source: ours.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

# What linear_operator raises of matrices; asked by name, as importing it takes seconds.
_MATRICES = ("NanError", "NotPSDError")


@contextmanager
def in_numbers(of: str) -> Iterator[None]:
    """Turns arithmetic that ends in no number into an error about what it was computed from.

    Args:
        of: What that is, as in "no answer follows from these experiments".

    Raises:
        ValueError: for a floating-point error, or a matrix that cannot be decomposed.
    """
    try:
        yield
    except (ArithmeticError, RuntimeError) as error:
        kinds = (ArithmeticError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]
        numerical = isinstance(error, kinds)
        if not numerical and type(error).__name__ not in _MATRICES:
            raise
        raise ValueError(f"no answer follows from {of}: {' '.join(str(error).split())[:300]}") from error


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
            f"expected a finite value for at least one of {len(values)} candidates; {UNDEFINED}: look for "
            "extreme rows in the table, or rescale the variables"
        )
    return place
