"""The numbers of decisions as texts: what stands in sentences, tables and pages.

    {"smoker": 1.0, "ward=B": 0.0, "ward=C": 1.0, "age": 50.0}
    {"smoker": "yes", "ward": "C", "age": 50.0}

Lines of ``decisions.jsonl`` hold the codes; the codings are in the recorded task, and in the data card. What
is not the code of a level stays a number. In a data card, which holds the task as fitted, a variable of
classes becomes one again, and the ends of ranges become texts. Records may have been edited: what has another
form stays as it is.

The desired region is the end of a sentence, the chance that *progression is at most 140*:

    progression <= 140          progression is at most 140
    100 <= progression <= 140   progression is between 100 and 140
    repaid = yes                repaid is yes
    severity <= medium          severity is at most medium

A region of several variables, or with long names, has no such words: then sentences speak of a desired
outcome.
"""

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.spaces.box import setting_text

if TYPE_CHECKING:
    from rehearsal_torch.data.rehearsal_task import RehearsalTask

Codings = Mapping[str, Coding]
# The most characters of a desired region in a sentence.
_LONGEST = 60
# A remark in brackets that follows itself.
_REPEATED = re.compile(r"( \([^()]*\))\1+")
# The parts of a decision's line that hold values of variables.
_PARTS = ("given", "present", "alteration", "recommendation")


def recorded_codings(plain: object) -> dict[str, Coding]:
    """The codings of a recorded task or data card; those that cannot be read are left out."""
    codings = {}
    for name, coding in plain.items() if isinstance(plain, Mapping) else ():
        with contextlib.suppress(ValueError):
            codings[str(name)] = Coding.of(str(name), coding)
    return codings


def worded(values: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """Names and values with texts in place of codes, and a class in place of its indicators."""
    by_column = {column: coding for coding in codings.values() for column in coding.columns}
    texts: dict[str, Any] = {}
    for name, value in values.items():
        coding, text = by_column.get(name), None
        if coding is not None and all(column in values for column in coding.columns):
            text = coding.text([values[column] for column in coding.columns])
        texts |= {name: value} if coding is None or text is None else {coding.name: text}
    return texts


def sentence_in_words(sentence: str, codings: Codings) -> str:
    """A sentence about the graph with variables of classes in place of their indicators, each once."""
    for coding in codings.values():
        if coding.reference is not None:
            sentence = sentence.replace(", ".join(coding.columns), coding.name)
            for column in sorted(coding.columns, key=len, reverse=True):
                sentence = sentence.replace(column, coding.name)
    return _REPEATED.sub(r"\1", sentence)


def in_numbers(values: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """The inverse of `worded`; a text that is no level of its variable is a ValueError."""
    numbers: dict[str, Any] = {}
    for name, value in values.items():
        coding = codings.get(name)
        place = None if coding is None else coding.place(value)
        if coding is not None and place is not None:
            numbers |= dict(zip(coding.columns, coding.rows[place].tolist(), strict=True))
        # A number is a code, unless levels are written as numbers.
        elif coding is not None and (isinstance(value, str | bool) or coding.counted):
            raise ValueError(f"{name}: expected one of {', '.join(coding.levels)}; got {value!r}")
        else:
            numbers[name] = value
    return numbers


def line_in_codes(line: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """The inverse of `line_in_texts`; values that cannot be read stay as they are."""

    def codes_of(values: Mapping[str, Any]) -> dict[str, Any]:
        codes = dict[str, Any]()
        for name, value in values.items():
            try:
                codes |= in_numbers({name: value}, codings)
            except ValueError:
                codes[name] = value
        return codes

    return _with_parts(line, codes_of)


def line_in_texts(line: Mapping[str, Any], codings: Codings) -> dict[str, Any]:
    """A decision's line with texts in place of codes."""
    texts = _with_parts(line, lambda values: worded(values, codings))
    trace = line.get("trace")
    if isinstance(trace, Mapping) and isinstance(trace.get("would_set"), Mapping):
        texts["trace"] = {**trace, "would_set": worded(trace["would_set"], codings)}
    for entry, part in (("runner_up", "action"), ("nearly", "ranges")):
        trace = texts.get("trace")
        content = trace.get(entry) if isinstance(trace, Mapping) else None
        if (
            isinstance(trace, Mapping)
            and isinstance(content, Mapping)
            and isinstance(content.get(part), Mapping)
        ):
            changed = {name: _worded(name, value, codings) for name, value in content[part].items()}
            texts["trace"] = {**trace, entry: {**content, part: changed}}
    return texts


def _worded(name: str, value: Any, codings: Codings) -> Any:
    if isinstance(value, list):
        return (
            [worded({name: entry}, codings).get(name, entry) for entry in value] if name in codings else value
        )
    return worded({name: value}, codings).get(name, value)


def _with_parts(line: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    """A decision's line with its values of variables changed."""
    return {
        part: change(content) if part in _PARTS and isinstance(content, Mapping) else content
        for part, content in line.items()
    }


def card_in_words(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card of a run or of a model for readers; the same card where nothing is coded."""
    codings, words = recorded_codings(card.get("codings")), dict(card)
    if not codings:
        return words
    variable_of = {column: coding.name for coding in codings.values() for column in coding.columns}
    if isinstance(card.get("context"), list | tuple):
        words["context"] = list(dict.fromkeys(variable_of.get(str(name), name) for name in card["context"]))
    if isinstance(card.get("graph"), Mapping):
        words["graph"] = {
            part: _of_variables(groups, part, variable_of) for part, groups in card["graph"].items()
        }
    if isinstance(card.get("ranges"), Mapping):
        words["ranges"] = {
            name: _ends(codings.get(name), ends)
            for name, ends in card["ranges"].items()
            if variable_of.get(name, name) == name
        }
    return words


def bound_in_words(coding: Coding, bound: float, below: bool) -> str:
    """A bound of a variable of levels, as ``severity at most medium``, or ``repaid yes`` where one level is
    left; of an outcome of classes as ``status well or mild``. It is an upper bound if `below`, else a lower
    one.
    """
    if coding.desired:
        return f"{coding.name} {coding.text([0.0 if below else 1.0])}"
    last = len(coding.levels) - 1
    place = min(max(math.floor(bound + 1e-9) if below else math.ceil(bound - 1e-9), 0), last)
    level = coding.levels[place]
    if place == (0 if below else last):
        return f"{coding.name} {level}"
    return f"{coding.name} {'at most' if below else 'at least'} {level}"


def _ends(coding: Coding | None, ends: Any) -> Any:
    """The ends of a range as texts."""
    if coding is None or not isinstance(ends, list | tuple):
        return ends
    texts = [coding.text([end]) for end in ends]
    return ends if None in texts else texts


def _of_variables(groups: Any, part: str, variable_of: Mapping[str, str]) -> Any:
    """Cliques, edges or hidden pairs with variables in the place of indicators, each once."""
    if not isinstance(groups, list | tuple) or not all(isinstance(names, list | tuple) for names in groups):
        return groups
    of_variables = list[list[Any]]()
    for group in groups:
        names = [variable_of.get(str(name), name) for name in group]
        distinct = list(dict.fromkeys(names))
        if (part == "cliques" or names == distinct) and distinct not in of_variables:
            of_variables.append(distinct)
    return of_variables


def faces_in_words(
    names: Sequence[str],
    normals: Sequence[Sequence[float]],
    offsets: Sequence[float],
    codings: Mapping[str, Coding],
) -> str:
    """The region M y <= d in words; empty unless it bounds one variable, and is short."""
    # (variable, bound, whether it is an upper one) of each weight.
    bounds = [
        (name, offset / weight, weight > 0)
        for normal, offset in zip(normals, offsets, strict=True)
        for name, weight in zip(names, normal, strict=True)
        if weight
    ]
    if any(sum(map(bool, normal)) != 1 for normal in normals):
        return ""
    words = ""
    if len(bounds) == 1:
        words = _bound_words(*bounds[0], codings)
    elif len(bounds) == 2 and bounds[0][0] == bounds[1][0] and bounds[0][2] != bounds[1][2]:
        name, (low, high) = bounds[0][0], sorted(bound for _, bound, _ in bounds)
        if name not in codings and low < high:
            words = f"{name} is between {setting_text(low)} and {setting_text(high)}"
    return words if len(words) <= _LONGEST else ""


def region_in_words(task: "RehearsalTask") -> str:
    """The desired region of a task in words; see `faces_in_words`."""
    region = task.region
    return faces_in_words(region.names, region.normals.tolist(), region.offsets.tolist(), task.coded)


def recorded_region_in_words(card: Mapping[str, Any]) -> str:
    """The desired region of a recorded data card in words; empty where the card was damaged."""
    region: Any = card.get("region")
    try:
        return faces_in_words(
            [str(name) for name in region["names"]],
            [[float(weight) for weight in normal] for normal in region["normals"]],
            [float(offset) for offset in region["offsets"]],
            recorded_codings(card.get("codings")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return ""


def _bound_words(name: str, bound: float, below: bool, codings: Mapping[str, Coding]) -> str:
    """One bound of one variable, as the end of a sentence."""
    if name in codings:
        return f"{name} is {bound_in_words(codings[name], bound, below).removeprefix(f'{name} ')}"
    return f"{name} is {'at most' if below else 'at least'} {setting_text(bound)}"
