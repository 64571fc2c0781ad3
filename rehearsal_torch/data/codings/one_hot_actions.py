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
from itertools import combinations as subsets
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import worded

if TYPE_CHECKING:
    from torch import Tensor


def parts(names: Sequence[str], codings: Sequence[Coding]) -> list[tuple[str, ...]]:
    """The names by variable, in their order: the indicators of one together, every other name alone."""
    of = {column: each.columns for each in whole(names, codings) for column in each.columns}
    return list(dict.fromkeys(of.get(name, (name,)) for name in names))


def joined(names: Sequence[str], codings: Sequence[Coding], most: int) -> list[tuple[str, ...]]:
    """The sets of at most `most` names that an alteration may set, smaller numbers of variables first; of the
    indicators of a variable all or none.
    """
    variables = parts(names, codings)
    return [
        tuple(name for name in names if any(name in columns for columns in some))
        for size in range(1, len(variables) + 1)
        for some in subsets(variables, size)
        if sum(map(len, some)) <= most
    ]


def whole(names: Sequence[str], codings: Sequence[Coding]) -> list[Coding]:
    """The codings of classes all of whose indicators are among some names."""
    known = set(names)
    return [each for each in codings if each.reference is not None and known.issuperset(each.columns)]


def offered(coding: Coding, levels: Mapping[str, Sequence[float]]) -> list[int]:
    """The places of the classes that may be set; columns without levels may be 0 and 1."""
    known = [set(levels.get(column, (0.0, 1.0))) for column in coding.columns]
    return [
        place
        for place, row in enumerate(coding.rows.tolist())
        if all(value in values for value, values in zip(row, known, strict=True))
    ]


def offered_words(coding: Coding, levels: Mapping[str, Sequence[float]]) -> str:
    """The classes that may be set, in words: ``one of A, C``; see `offered`."""
    return f"one of {', '.join(coding.levels[place] for place in offered(coding, levels))}"


def count(levels: Mapping[str, Sequence[float]], codings: Sequence[Coding]) -> int:
    """The number of `combinations`."""
    return math.prod(len(each) for each in _choices(levels, codings).values())


def combinations(levels: Mapping[str, Sequence[float]], codings: Sequence[Coding]) -> list[tuple[float, ...]]:
    """All combinations of the values of some variables, each in the order of `levels`."""
    chosen = _choices(levels, codings)
    names = [name for columns in chosen for name in columns]
    order = [names.index(name) for name in levels]
    rows = ([value for part in each for value in part] for each in product(*chosen.values()))
    return [tuple(row[place] for place in order) for row in rows]


def _choices(
    levels: Mapping[str, Sequence[float]], codings: Sequence[Coding]
) -> dict[tuple[str, ...], list[tuple[float, ...]]]:
    """The columns of each variable to the values that they may have together."""
    classes = {
        each.columns: [tuple(each.rows[place].tolist()) for place in offered(each, levels)]
        for each in whole(list(levels), codings)
    }
    return {
        columns: classes.get(columns) or [(float(value),) for value in levels[columns[0]]]
        for columns in parts(list(levels), codings)
    }


def no_class(names: Sequence[str], values: Tensor, codings: Sequence[Coding]) -> Coding | None:
    """The coding of the first variable for which values (..., k) state several classes at once, if any."""
    for each in whole(names, codings):
        places = [list(names).index(column) for column in each.columns]
        if bool((values[..., places].sum(-1) > 1.5).any()):
            return each
    return None


def cycled(
    points: Tensor,
    names: Sequence[str],
    codings: Sequence[Coding],
    levels: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Tensor:
    """Points (n, k) with the classes on offer of every variable that has some in turn: all combinations,
    where there are enough points.
    """
    made, stride = points.clone(), 1
    for each in whole(names, codings):
        places = [list(names).index(column) for column in each.columns]
        rows = points.new_tensor(each.rows[offered(each, levels)])
        made[:, places] = rows[np.arange(len(points)) // stride % len(rows)]
        stride *= len(rows)
    return made


def in_places(values: Mapping[str, Any], codings: Sequence[Coding]) -> dict[str, Any]:
    """Names and values with the place of a class in place of its indicators."""
    found = worded(values, {each.name: each for each in whole(list(values), codings)})
    classes = {each.name: each.levels for each in codings if each.name not in values}
    return {
        name: float(classes[name].index(value)) if name in classes else value for name, value in found.items()
    }


def in_indicators(values: Mapping[str, Any], codings: Sequence[Coding]) -> dict[str, Any]:
    """The inverse of `in_places`; a number that is the place of no class is a ValueError."""
    of = {each.name: each for each in codings if each.reference is not None}
    found: dict[str, Any] = {}
    for name, value in values.items():
        coding = of.get(name)
        if coding is None:
            found[name] = value
            continue
        if value not in range(len(coding.levels)):
            among = f"{', '.join(coding.levels)}, from 0 to {len(coding.levels) - 1}"
            raise ValueError(f"{name}: expected the place of one of {among}; got {value!r}")
        found |= dict(zip(coding.columns, coding.rows[int(value)].tolist(), strict=True))
    return found
