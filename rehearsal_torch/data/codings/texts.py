"""The numbers of decisions as texts: what stands in sentences, tables and pages.

    {"smoker": 1.0, "ward=B": 0.0, "ward=C": 1.0, "age": 50.0}
    {"smoker": "yes", "ward": "C", "age": 50.0}

Lines of ``decisions.jsonl`` hold the codes; the codings are in the recorded task, and in the data card. What
is not the code of a level stays a number.
"""

import re
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.codings.coding import Coding

Codings = Mapping[str, Coding]
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
    if not codings:
        return dict(values)
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
    """The inverse of `worded`: codes in place of texts, and indicators in place of a class.

    Raises:
        ValueError: if a text is no level of its variable.
    """
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
    if not codings:
        return dict(line)
    found = dict(line)
    for part in PARTS:
        if isinstance(found.get(part), Mapping):
            found[part] = worded(found[part], codings)
    trace = found.get("trace")
    if isinstance(trace, Mapping) and isinstance(trace.get("would_set"), Mapping):
        found["trace"] = {**trace, "would_set": worded(trace["would_set"], codings)}
    return found
