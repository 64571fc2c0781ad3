"""Conditional independence, tested on a table.

Given n rows, is a independent of b once S is known? A test answers with a p-value; above the level, independence is kept.

    fisherz    partial correlation, for linear Gaussian laws
    chisq gsq  contingency tables, for columns that are codes
    kci        kernels, for laws of any form; slow beyond some hundred rows

Fisher's test needs more rows than |S| + 3; where different rows are fewer (resampling repeats rows) it is not made, and the pair
counts as dependent: no evidence parts them.

Source: Fisher (1921); Zhang et al. (2011) (kci). The tests are those of the library causal-learn.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

TESTS = ("fisherz", "chisq", "gsq", "kci")
Independence = Callable[[int, int, Sequence[int]], float]
_LEVELS = 30


def independence(values: Tensor, names: Sequence[str], test: str = "fisherz") -> Independence:
    """A test of the columns of a table.

    Args:
        values: (n, d), each column in its own unit; its scale does not matter.
        names: The d columns, for messages.
        test: One of `TESTS`.

    Returns:
        The p-value of column a against column b given columns S.

    Raises:
        ValueError: for an unknown test, values that are missing, columns that are constant, that depend exactly on others, or are no codes.
        ModuleNotFoundError: if causal-learn is not installed.
    """
    if test not in TESTS:
        raise ValueError(f"unknown test {test!r}: choose one of {', '.join(TESTS)}")
    table = values.detach().cpu().double().numpy()
    _check(table, names, test)
    rows = len(np.unique(table, axis=0))
    if test in ("fisherz", "kci") and rows > len(names) and (tied := _tied(table, names)):
        raise ValueError(f"{tied[-1]} is a linear function of {list(tied[:-1])}: such columns cannot be told apart, take one of them out")
    p_value = _library(table, test)

    def answer(one: int, other: int, given: Sequence[int]) -> float:
        if test == "fisherz" and rows <= len(given) + 4:
            return 0.0
        found = float(p_value(one, other, tuple(given)))
        return 0.0 if math.isnan(found) else found

    return answer


def _library(table: np.ndarray, test: str) -> Callable[[int, int, tuple[int, ...]], float]:
    try:
        from causallearn.utils.cit import CIT
    except ImportError as error:
        raise ModuleNotFoundError("learning graphs needs causal-learn: pip install 'rehearsal-torch[graphs]'") from error
    return CIT(table, test)


def _check(table: np.ndarray, names: Sequence[str], test: str) -> None:
    if table.ndim != 2 or table.shape[1] != len(names):
        raise ValueError(f"expected values of shape (n, {len(names)}); got {table.shape}")
    if len(table) < 5:
        raise ValueError(f"expected at least 5 rows; got {len(table)}: no independence can be tested on so few")
    missing = [name for name, column in zip(names, table.T, strict=True) if not np.isfinite(column).all()]
    if missing:
        raise ValueError(f"{missing} have values that are missing or infinite: drop or impute those rows")
    constant = [name for name, column in zip(names, table.T, strict=True) if (column == column[0]).all()]
    if constant:
        raise ValueError(f"{constant} are constant: a constant says nothing, take the variable out")
    if test in ("chisq", "gsq"):
        wide = [name for name, column in zip(names, table.T, strict=True) if (column != column.round()).any() or len(np.unique(column)) > _LEVELS]
        if wide:
            raise ValueError(f"{test} tests codes, at most {_LEVELS} whole numbers a column; {wide} have other values: use fisherz or kci, or bin them")


def _tied(table: np.ndarray, names: Sequence[str]) -> tuple[str, ...]:
    """The first column that depends exactly on earlier ones, behind those that it depends on; empty if there is none."""
    scaled = (table - table.mean(0)) / table.std(0)
    kept: list[int] = []
    for index in range(scaled.shape[1]):
        weights, *_ = np.linalg.lstsq(scaled[:, kept], scaled[:, index], rcond=None)
        rest = scaled[:, index] - scaled[:, kept] @ weights
        if np.sqrt((rest**2).mean()) < 1e-7:
            return (*(names[each] for each, weight in zip(kept, weights, strict=True) if abs(weight) > 1e-6), names[index])
        kept.append(index)
    return ()
