"""Recorded data cards with texts in place of codes: what reports show of roles, graph and ranges.

A card holds the task as it was fitted, with indicators of classes and codes of levels. For readers a variable
of classes is one variable again, and the ends of a range are texts. The card may have been edited: what has
another form stays as it is.
"""

import math
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.texts import recorded_codings


def card_in_words(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card of a run or of a model for readers; the same card where nothing is coded.

    Args:
        card: Its content, with ``codings`` as the task has them.
    """
    codings = recorded_codings(card.get("codings"))
    found = dict(card)
    if not codings:
        return found
    of = {column: each.name for each in codings.values() for column in each.columns}
    if isinstance(found.get("context"), list | tuple):
        found["context"] = list(dict.fromkeys(of.get(str(name), name) for name in found["context"]))
    if isinstance(found.get("graph"), Mapping):
        found["graph"] = {part: _named(each, part, of) for part, each in found["graph"].items()}
    if isinstance(found.get("ranges"), Mapping):
        found["ranges"] = {
            name: _ends(codings.get(name), each)
            for name, each in found["ranges"].items()
            if name not in of or of[name] == name
        }
    return found


def bound_in_words(coding: Coding, bound: float, below: bool) -> str:
    """A bound of a variable of levels: ``severity at most medium``, or ``repaid yes`` where one is left;
    of an outcome of classes: ``status well or mild``.

    Args:
        bound: The bound, a code or between two.
        below: Whether values up to the bound are meant; else those from it.
    """
    if coding.desired:
        return f"{coding.name} {coding.text([0.0 if below else 1.0])}"
    last = len(coding.levels) - 1
    place = min(max(math.floor(bound + 1e-9) if below else math.ceil(bound - 1e-9), 0), last)
    level = coding.levels[place]
    if place == (0 if below else last):
        return f"{coding.name} {level}"
    return f"{coding.name} {'at most' if below else 'at least'} {level}"


def _ends(coding: Coding | None, written: Any) -> Any:
    """The ends of a range as texts."""
    if coding is None or not isinstance(written, list | tuple):
        return written
    texts = [coding.text([end]) for end in written]
    return written if None in texts else texts


def _named(written: Any, part: str, of: Mapping[str, str]) -> Any:
    """Cliques, edges or bows with variables in the place of indicators, each once."""
    if not isinstance(written, list | tuple):
        return written
    found = list[list[Any]]()
    for each in written:
        if not isinstance(each, list | tuple):
            return written
        names = [of.get(str(name), name) for name in each]
        if part == "cliques":
            names = list(dict.fromkeys(names))
        elif len(set(names)) < len(names):
            continue
        if names not in found:
            found.append(names)
    return found
