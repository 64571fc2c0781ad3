"""Arithmetic that ends in no number: said of the rows it came from, whichever library found it.

Rows of very different size, values that copy each other, or a checkpoint that was edited can leave a method without a finite
number. What is raised then differs from library to library; for whoever asked it is the same, and it is no fault of the program.

Source: ours.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

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
        if not isinstance(error, ArithmeticError | torch.linalg.LinAlgError) and type(error).__name__ not in _MATRICES:  # type: ignore[attr-defined]
            raise
        raise ValueError(f"no answer follows from {of}: {' '.join(str(error).split())[:300]}") from error
