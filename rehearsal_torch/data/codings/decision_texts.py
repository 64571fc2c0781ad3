"""The numbers of decisions as texts: what stands in sentences, tables and pages.

    {"smoker": 1.0, "ward=B": 0.0, "ward=C": 1.0, "age": 50.0}
    {"smoker": "yes", "ward": "C", "age": 50.0}

Lines of ``decisions.jsonl`` hold the codes; the codings are in the recorded task, and in the data card. What
is not the code of a level stays a number. Of a data card, which holds the task as it was fitted, readers see
a variable of classes as one again, and the ends of ranges as texts. It may have been edited: what has another
form stays as it is.

The desired region is the end of a sentence, the chance that *progression is at most 140*:

    progression <= 140          progression is at most 140
    100 <= progression <= 140   progression is between 100 and 140
    repaid = yes                repaid is yes
    severity <= medium          severity is at most medium

A region of several variables, or with long names, is not said: then sentences speak of a desired outcome, and
the question of the report states the region.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.spaces.box import setting_text

if TYPE_CHECKING:
    from rehearsal_torch.data.rehearsal_task import RehearsalTask

Codings = Mapping[str, Coding]
# The longest desired region that is said.
MOST = 60
# A remark in brackets that follows itself.
_REPEATED = re.compile(r"( \([^()]*\))\1+")
# The parts of a decision's line that hold values of variables.
PARTS = ("given", "present", "alteration")


def recorded_codings(plain: object) -> dict[str, Coding]:
    """The codings of a recorded task or data card; those that cannot be read are left out."""
    found = {}
    for name, each in plain.items() if isinstance(plain, Mapping) else ():
        try:
            found[str(name)] = Coding.of(str(name), each)
        except ValueError:
            continue
    return found


def worded(values: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """Names and values with texts in place of codes, and a class in place of its indicators."""
    by_column = {column: coding for coding in codings.values() for column in coding.columns}
    found: dict[str, Any] = {}
    for name, value in values.items():
        coding = by_column.get(name)
        if coding is not None and all(column in values for column in coding.columns):
            text = coding.text([values[column] for column in coding.columns])
            if text is not None:
                found[coding.name] = text
                continue
        found[name] = value
    return found


def sentence_in_words(sentence: str, codings: Codings) -> str:
    """A sentence about the graph with variables of classes in place of their indicators, each said once."""
    for each in codings.values():
        if each.reference is None:
            continue
        sentence = sentence.replace(", ".join(each.columns), each.name)
        for column in sorted(each.columns, key=len, reverse=True):
            sentence = sentence.replace(column, each.name)
    return _REPEATED.sub(r"\1", sentence)


def in_numbers(values: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """The inverse of `worded`; a text that is no level of its variable is a ValueError."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        coding = codings.get(name)
        place = None if coding is None else coding.place(value)
        if coding is None or (place is None and not isinstance(value, str | bool) and not coding.counted):
            # A number is a code, unless levels are written as numbers.
            found[name] = value
            continue
        if place is None:
            raise ValueError(f"{name}: expected one of {', '.join(coding.levels)}; got {value!r}")
        found |= dict(zip(coding.columns, coding.rows[place].tolist(), strict=True))
    return found


def in_line(line: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """The inverse of `said`, for the values that can be read."""
    found = dict(line)
    for part in PARTS if codings else ():
        if isinstance(found.get(part), Mapping):
            whole: dict[str, Any] = {}
            for name, value in found[part].items():
                try:
                    whole |= in_numbers({name: value}, codings)
                except ValueError:
                    whole[name] = value
            found[part] = whole
    return found


def said(line: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """A decision's line with texts in place of codes."""
    found = dict(line)
    for part in PARTS:
        if isinstance(found.get(part), Mapping):
            found[part] = worded(found[part], codings)
    trace = found.get("trace")
    if isinstance(trace, Mapping) and isinstance(trace.get("would_set"), Mapping):
        found["trace"] = {**trace, "would_set": worded(trace["would_set"], codings)}
    return found


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
    """A bound of a variable of levels: ``severity at most medium``, or ``repaid yes`` where one is left; of
    an outcome of classes: ``status well or mild``. Values up to the bound are meant, or, if not `below`, from
    it.
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
    """Cliques, edges or hidden pairs with variables in the place of indicators, each once."""
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
