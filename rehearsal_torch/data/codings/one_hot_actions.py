"""Actions of classes: indicators that are set together, of which at most one is 1.

    box: {treatment: {values: [A, B, C]}}       the columns treatment=B and treatment=C, each 0 or 1, with
                                                treatment=B + treatment=C <= 1

The combinations of the values of a candidate set are products over its variables: the levels of one, the
classes of another. A class is one choice, not one for each indicator. Where only some classes are offered,
the reference is one of them, and the indicators of the others are 0 alone:

    box: {treatment: {values: [A, B]}}          treatment=B is 0 or 1, treatment=C is 0

Where a number stands for a class, at an axis or on a page, it is the place of the class, 0, 1, ..., in the
order in which the task names them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain, product
from itertools import combinations as subsets
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import worded

if TYPE_CHECKING:
    from torch import Tensor


def by_variable(names: Sequence[str], codings: Sequence[Coding]) -> list[tuple[str, ...]]:
    """The names by variable, in their order: the indicators of one together, every other name alone."""
    together = {column: coding.columns for coding in classes_in(names, codings) for column in coding.columns}
    return list(dict.fromkeys(together.get(name, (name,)) for name in names))


def candidate_sets(names: Sequence[str], codings: Sequence[Coding], most: int) -> list[tuple[str, ...]]:
    """The sets of at most `most` names that an alteration may set, smaller numbers of variables first; of the
    indicators of a variable all or none.
    """
    variables = by_variable(names, codings)
    return [
        tuple(name for name in names if any(name in columns for columns in subset))
        for size in range(1, len(variables) + 1)
        for subset in subsets(variables, size)
        if sum(map(len, subset)) <= most
    ]


def classes_in(names: Sequence[str], codings: Sequence[Coding]) -> list[Coding]:
    """The codings of classes all of whose indicators are among some names."""
    return [each for each in codings if each.reference is not None and {*each.columns} <= {*names}]


def offered_places(coding: Coding, levels: Mapping[str, Sequence[float]]) -> list[int]:
    """The places of the classes that may be set; columns without levels may be 0 and 1."""
    allowed = [set(levels.get(column, (0.0, 1.0))) for column in coding.columns]
    return [
        place
        for place, row in enumerate(coding.rows.tolist())
        if all(value in values for value, values in zip(row, allowed, strict=True))
    ]


def offered_words(coding: Coding, levels: Mapping[str, Sequence[float]]) -> str:
    """The classes that may be set, in words: ``one of A, C``; see `offered_places`."""
    return f"one of {', '.join(coding.levels[place] for place in offered_places(coding, levels))}"


def combination_count(levels: Mapping[str, Sequence[float]], codings: Sequence[Coding]) -> int:
    """The number of `combinations`."""
    return math.prod(map(len, _choices(levels, codings).values()))


def combinations(levels: Mapping[str, Sequence[float]], codings: Sequence[Coding]) -> list[tuple[float, ...]]:
    """All combinations of the values of some variables, each in the order of `levels`."""
    choices = _choices(levels, codings)
    names = [name for columns in choices for name in columns]
    order = [names.index(name) for name in levels]
    rows = (list(chain.from_iterable(choice)) for choice in product(*choices.values()))
    return [tuple(row[place] for place in order) for row in rows]


def _choices(
    levels: Mapping[str, Sequence[float]], codings: Sequence[Coding]
) -> dict[tuple[str, ...], list[tuple[float, ...]]]:
    """The columns of each variable to the values that they may have together."""
    classes = {
        coding.columns: list(map(tuple, coding.rows[offered_places(coding, levels)].tolist()))
        for coding in classes_in(list(levels), codings)
    }
    return {
        columns: classes.get(columns) or [(float(value),) for value in levels[columns[0]]]
        for columns in by_variable(list(levels), codings)
    }


def no_class(names: Sequence[str], values: Tensor, codings: Sequence[Coding]) -> Coding | None:
    """The coding of the first variable for which values (..., k) state several classes at once, if any."""
    for coding in classes_in(names, codings):
        places = [list(names).index(column) for column in coding.columns]
        if bool((values[..., places].sum(-1) > 1.5).any()):
            return coding
    return None


def with_classes_in_turn(
    points: Tensor,
    names: Sequence[str],
    codings: Sequence[Coding],
    levels: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Tensor:
    """Points (n, k) with the classes that may be set in turn: with all combinations of the classes of several
    variables, where there are enough points.
    """
    points, stride = points.clone(), 1
    for coding in classes_in(names, codings):
        places = [list(names).index(column) for column in coding.columns]
        rows = points.new_tensor(coding.rows[offered_places(coding, levels)])
        points[:, places] = rows[np.arange(len(points)) // stride % len(rows)]
        stride *= len(rows)
    return points


def in_places(values: Mapping[str, Any], codings: Sequence[Coding]) -> dict[str, Any]:
    """Names and values with the place of a class in place of its indicators."""
    texts = worded(values, {coding.name: coding for coding in classes_in(list(values), codings)})
    classes = {coding.name: coding.levels for coding in codings if coding.name not in values}
    return {
        name: float(classes[name].index(value)) if name in classes else value for name, value in texts.items()
    }


def in_indicators(values: Mapping[str, Any], codings: Sequence[Coding]) -> dict[str, Any]:
    """The inverse of `in_places`; a number that is the place of no class is a ValueError."""
    classes = {coding.name: coding for coding in codings if coding.reference is not None}
    indicators: dict[str, Any] = {}
    for name, value in values.items():
        coding = classes.get(name)
        if coding is None:
            indicators[name] = value
        elif value in range(len(coding.levels)):
            indicators |= dict(zip(coding.columns, coding.rows[int(value)].tolist(), strict=True))
        else:
            expected = f"{', '.join(coding.levels)}, from 0 to {len(coding.levels) - 1}"
            raise ValueError(f"{name}: expected the place of one of {expected}; got {value!r}")
    return indicators
