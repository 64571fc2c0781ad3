"""Recorded data cards with texts in place of codes: what reports show of roles, graph and ranges.

A card holds the task as it was fitted, with indicators of classes and codes of levels. For readers a variable
of classes is one variable again, and the ends of a range are texts. The card may have been edited: what has
another form stays as it is.

The desired region as the end of a sentence: the chance that *progression is at most 140*.

    progression <= 140          progression is at most 140
    100 <= progression <= 140   progression is between 100 and 140
    repaid = yes                repaid is yes
    severity <= medium          severity is at most medium

A region of several variables, or with long names, is not said: then sentences speak of a desired outcome, and
the question of the report states the region.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.texts import recorded_codings
from rehearsal_torch.spaces.box import setting_text


def card_in_words(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card of a run or of a model for readers; the same card where nothing is coded."""
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


if TYPE_CHECKING:
    from rehearsal_torch.data.rehearsal_task import RehearsalTask

MOST = 60


def wanted(
    names: Sequence[str],
    normals: Sequence[Sequence[float]],
    offsets: Sequence[float],
    codings: Mapping[str, Coding],
) -> str:
    """The region M y <= d in words; empty unless it bounds one variable, and is short."""
    bounds = [
        [(name, weight, offset) for name, weight in zip(names, normal, strict=True) if weight]
        for normal, offset in zip(normals, offsets, strict=True)
    ]
    if any(len(face) != 1 for face in bounds):
        return ""
    faces = [face[0] for face in bounds]
    said = ""
    if len(faces) == 1:
        said = _one(*faces[0], codings)
    elif len(faces) == 2 and faces[0][0] == faces[1][0] and faces[0][1] * faces[1][1] < 0:
        name = faces[0][0]
        low, high = sorted(offset / weight for _, weight, offset in faces)
        if name not in codings and low < high:
            said = f"{name} is between {setting_text(low)} and {setting_text(high)}"
    return said if len(said) <= MOST else ""


def wanted_in(task: "RehearsalTask") -> str:
    """The desired region of a task in words; see `wanted`."""
    region = task.region
    return wanted(region.names, region.normals.tolist(), region.offsets.tolist(), task.coded)


def wanted_of(card: Mapping[str, Any]) -> str:
    """The desired region of a recorded data card in words; empty where it is not recorded as it should be."""
    stated = card.get("region")
    if not isinstance(stated, Mapping):
        return ""
    try:
        return wanted(
            [str(name) for name in stated["names"]],
            [[float(weight) for weight in normal] for normal in stated["normals"]],
            [float(offset) for offset in stated["offsets"]],
            recorded_codings(card.get("codings")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""


def _one(name: str, weight: float, offset: float, codings: Mapping[str, Coding]) -> str:
    """One face of one variable."""
    coding = codings.get(name)
    if coding is not None:
        said = bound_in_words(coding, offset / weight, weight > 0)
        return f"{coding.name} is {said.removeprefix(f'{coding.name} ')}"
    return f"{name} is {'at most' if weight > 0 else 'at least'} {setting_text(offset / weight)}"
