"""Descriptions and types of a class's arguments, from ``Args:``, ``Attributes:`` and annotations."""

import inspect
import re
from functools import cache
from importlib import import_module
from typing import Any

_ENTRY = re.compile(r"(\w+)(?: \([^)]*\))?:\s*(.*)")
# The constructor of an objective of alterations with its settings.
FOR_SETS = "for_sets"
_WORDS = {"int": "whole number", "float": "number", "str": "text", "bool": "true or false"}


@cache
def named(target: str) -> Any:
    """The object of a dotted name; importing it may take seconds."""
    module, _, name = target.rpartition(".")
    return getattr(import_module(module), name)


@cache
def argument_docs(target: str) -> dict[str, str]:
    """Argument to description, for a class with its bases, or a function."""
    value = named(target)
    docs: dict[str, str] = {}
    for owner in reversed(inspect.getmro(value)) if inspect.isclass(value) else (value,):
        methods = [vars(owner)[name] for name in ("__init__", FOR_SETS) if name in vars(owner)]
        for source in (owner, *methods):
            docs.update(entries(source.__doc__ or ""))
    return docs


def takes(target: str) -> dict[str, inspect.Parameter]:
    """The parameters that a configuration may set, by name, also those of an objective's `for_sets`."""
    value = named(target)
    for_sets = inspect.getattr_static(value, FOR_SETS, None)
    further = {} if for_sets is None else inspect.signature(getattr(value, FOR_SETS)).parameters
    return {**inspect.signature(value).parameters, **further}


def entries(docstring: str) -> dict[str, str]:
    """The entries of the sections ``Args:`` and ``Attributes:`` of a Google-style docstring."""
    docs: dict[str, str] = {}
    inside, indent, last = False, 0, ""
    for line in inspect.cleandoc(docstring).splitlines():
        depth = len(line) - len(line.lstrip())
        if depth == 0 and line:
            inside, indent, last = line in ("Args:", "Attributes:"), 0, ""
        elif inside and line.strip():
            indent = indent or depth
            entry = _ENTRY.match(line.strip()) if depth == indent else None
            if entry is not None:
                last = entry[1]
                docs[last] = entry[2].strip()
            elif last:
                docs[last] = f"{docs[last]} {line.strip()}".strip()
    return docs


def annotated(target: str, argument: str) -> str:
    """The type of an argument, in words; empty if it is not annotated."""
    parameter = takes(target).get(argument)
    if parameter is None or parameter.annotation is inspect.Parameter.empty:
        return ""
    annotation = parameter.annotation
    text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+", "", text)
    kinds = [_kind(part.strip()) for part in re.split(r"\|(?![^\[]*\])", text)]
    return " or ".join(dict.fromkeys("null" if kind == "None" else kind for kind in kinds))


def _kind(text: str) -> str:
    name = text.partition("[")[0]
    if name in ("list", "tuple", "Sequence", "Iterable"):
        return "list"
    return "mapping" if name in ("dict", "Mapping") else _WORDS.get(text, text)
