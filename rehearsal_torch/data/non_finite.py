"""NaN and infinities: ranking of objective values without them, and errors of numerical breakdown.

`argmax`, `topk` and sorts treat NaN as the largest value (IEEE 754, Sec. 5.11, leaves it unordered), so that
one undefined value would win every comparison. Searches therefore rank by `ranked`, under which NaN and the
infinities lose against every finite value, and refuse if no finite value is left.

Values of very different magnitude, duplicated columns, or an edited checkpoint can lead to numerical
breakdown. The exception depends on the library that detects it; `in_numbers` turns all into one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from rehearsal_torch.files.redaction import beginning

# Exceptions of linear_operator; compared by name, as importing it takes seconds.
_MATRICES = ("NanError", "NotPSDError")


@contextmanager
def in_numbers(of: str) -> Iterator[None]:
    """Turns errors of numerical breakdown into one ValueError that names `of` what the data are."""
    try:
        yield
    except (ArithmeticError, RuntimeError) as error:
        kinds = (ArithmeticError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]
        if not isinstance(error, kinds) and type(error).__name__ not in _MATRICES:
            raise
        reason = beginning(" ".join(str(error).split()), 300)
        raise ValueError(f"no answer follows from {of}: {reason}") from error


def alike(known: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The columns of a mask (n, D) that mark the same rows: their ascending indices, and these rows, (n,)."""
    groups: dict[bytes, list[int]] = {}
    for column, rows in enumerate(known.T.contiguous().cpu().numpy()):
        groups.setdefault(rows.tobytes(), []).append(column)
    return [(torch.tensor(columns, device=known.device), known[:, columns[0]]) for columns in groups.values()]


UNDEFINED = "every value of the objective is NaN or infinite"


class NoFiniteValueError(ValueError):
    """No candidate has a finite value, so that none can be selected."""


def ranked(values: Tensor) -> Tensor:
    """Values for comparison: finite values unchanged, all others minus infinity; any shape."""
    return values.where(values.isfinite(), -torch.inf)


def best_of_all(values: Tensor) -> int:
    """The index of the largest finite value of (n,), the first of several; an error if there is none."""
    clean = ranked(values)
    index = int(clean.argmax()) if len(clean) else -1
    if index < 0 or not bool(clean[index].isfinite()):
        expected = f"expected a finite value for at least one of {len(values)} candidates"
        remedy = "look for extreme rows in the table, or rescale the variables"
        raise NoFiniteValueError(f"{expected}; {UNDEFINED}: {remedy}")
    return index
