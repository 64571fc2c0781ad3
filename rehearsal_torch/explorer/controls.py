"""The controls of the page for the context of a case and for what is set: a number for a variable, a choice
where it has texts.
"""

import math
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.codings.class_actions import offered as offered_places
from rehearsal_torch.data.rehearsal_task import RehearsalTask


def asked(task: RehearsalTask, ranges: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """What the page asks for: each variable of the context with its ``range``, or with its ``levels``, each a
    ``text`` and the ``values`` of its coded columns.

    Args:
        task: The roles of the variables.
        ranges: Column to the ends of the observations, where they are known.
    """
    found: list[dict[str, Any]] = []
    for name in task.variables(task.context):
        coding = task.coded.get(name)
        if coding is None:
            found.append({"name": name, "range": ranges.get(name)})
            continue
        rows = zip(coding.levels, coding.rows.tolist(), strict=True)
        levels = [{"text": text, "values": dict(zip(coding.columns, row, strict=True))} for text, row in rows]
        found.append({"name": name, "range": None, "levels": levels})
    return found


def offered(task: RehearsalTask, ranges: Mapping[str, list[float]]) -> dict[str, dict[str, Any]]:
    """What the page offers for each action: its ``bounds``, or its ``levels``, with their ``texts`` if it has
    some, and the ``range`` of the observations. The levels of classes are their places.

    Args:
        task: The roles of the variables.
        ranges: Column to the ends of the observations, where they are known.
    """
    bounds, found = task.box.bounds(), dict[str, dict[str, Any]]()
    for name in task.variables(task.box.names):
        coding = task.coded.get(name)
        texts = None if coding is None else list(coding.levels)
        if coding is not None and coding.reference is not None:
            places = [float(place) for place in offered_places(coding, task.box.levels)]
            ends = [places[0], places[-1]]
            found[name] = {"bounds": ends, "levels": places, "texts": texts, "range": ends}
            continue
        levels = list(task.box.levels[name]) if name in task.box.levels else None
        found[name] = {
            "bounds": list(bounds[name]),
            "levels": levels,
            "texts": texts,
            "range": ranges.get(name),
        }
    return found


def usual(task: RehearsalTask, means: Mapping[str, float]) -> dict[str, float]:
    """A first value for each coded column of the context: the mean in three digits, the level that is next to
    it, or the most frequent class.

    Args:
        task: The roles of the variables.
        means: Column to its mean, where it is known.
    """
    found = {name: _short(means[name]) for name in task.context if name in means}
    for coding in task.codings:
        if not set(coding.columns) <= set(found):
            continue
        known = [means[name] for name in coding.columns]
        if coding.reference is None:
            rest = min(range(len(coding.levels)), key=lambda place: abs(place - known[0]))
        else:
            shares = {each: means.get(f"{coding.name}={each}", 1 - sum(known)) for each in coding.levels}
            rest = max(range(len(coding.levels)), key=lambda place: shares[coding.levels[place]])
        found |= dict(zip(coding.columns, coding.rows[rest].tolist(), strict=True))
    return found


def _short(value: float) -> float:
    """A number with three significant digits, as a first value to change."""
    return float(f"{value:.3g}") if math.isfinite(value) else 0.0
