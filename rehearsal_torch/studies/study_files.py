"""Readers of the data files of a study.

The folder of a study has three files without code:

    study.yaml        worlds, methods, stages, seeds and options; overrides as typed on the command line
    published.yaml    the numbers printed in the paper, for comparison (optional)
    text.md           the paragraphs of the README, one section each, with {placeholders}

A job block of a stage lists worlds, methods and settings. Lists under plural keys (``worlds:``, ``methods:``,
``settings:``) can be replaced on the command line; values under singular keys (``world:``, ``method:``) and
``cross:`` are fixed. ``all`` stands for all names of a kind, and the name of a group for its members.

This module imports no heavy packages, so that help and error messages appear at once.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.errors import did_you_mean
from rehearsal_torch.files.forms import TEXTS, WHOLE, checked, shown
from rehearsal_torch.files.plain import PlainFileError, read_yaml, text_of
from rehearsal_torch.studies.study import KEY, KINDS, Block, Method, Stage, Study, StudyOption, World

FOLDER = Path(__file__).parent
ALL = "all"

_STUDY = {
    "title": "a string",
    "about": "a string",
    "source": "a string",
    "out": "a string",
    "unit": "a string",
    "example": "a string",
    "key": TEXTS,
    "overrides": TEXTS,
    "worlds": "a mapping",
    "methods": "a mapping",
    "settings": "a mapping",
    "groups": "a mapping",
    "seeds": "a list of whole numbers",
    "stages": "a mapping",
    "options": "a mapping",
    "facts": "a mapping",
}
_NEEDED = ("title", "about", "source", "out", "unit", "example", "stages")
_WORLD = {
    "overrides": TEXTS,
    "dataset": "a string",
    "setting": "a string",
    "figure": "a string",
    "rounds": WHOLE,
}
_METHOD = {"overrides": TEXTS, "counterpart": "a string", "settings": "true or false"}
_STAGE = {
    "about": "a string",
    "file": "a string",
    "alone": "true or false",
    "seeds": "a list of whole numbers",
    "jobs": "a list",
    "cases": "a list",
}
_BLOCK = {
    "world": "a string",
    "worlds": "a string or a list of strings",
    "method": "a string",
    "methods": "a string or a list of strings",
    "settings": "a string or a list of strings",
    "cross": "a list",
    "overrides": TEXTS,
    "seeds": "a list of whole numbers",
}
_OPTION = {
    "meaning": "a string",
    "default": "a number or a string or null",
    "kind": "a string",
    "shared": "true or false",
}


@cache
def study(name: str) -> Study:
    """A study of the package.

    Args:
        name: One of `STUDIES`.

    Raises:
        PlainFileError: if study.yaml is damaged.
    """
    return read_study(FOLDER / name / "study.yaml", name)


def read_study(path: Path, name: str) -> Study:
    """A study from a file.

    Args:
        path: A YAML file.
        name: Name of the study.

    Raises:
        PlainFileError: for a missing or unknown key, a value of the wrong type, or an undefined name.
    """
    content = _form(read_yaml(path), str(path), _STUDY, _NEEDED)
    where = str(path)
    worlds = {
        key: _world(key, value, f"{where}: worlds: {key}") for key, value in content.get("worlds", {}).items()
    }
    methods = {
        key: _method(key, value, f"{where}: methods: {key}")
        for key, value in content.get("methods", {}).items()
    }
    settings = {
        key: _texts(value, f"{where}: settings: {key}") for key, value in content.get("settings", {}).items()
    }
    groups = {
        key: _texts(value, f"{where}: groups: {key}") for key, value in content.get("groups", {}).items()
    }
    for group, names in groups.items():
        _known(names, (*worlds, *methods, *settings), f"{where}: groups: {group}")
    key = tuple(content.get("key", KEY))
    _known(key, KEY, f"{where}: key")
    tables = {"worlds": tuple(worlds), "methods": tuple(methods), "settings": tuple(settings)}
    default_seeds = _seeds(content, where) or ()
    stages = {
        each: _stage(each, value, f"{where}: stages: {each}", tables, groups, default_seeds)
        for each, value in content["stages"].items()
    }
    options = {
        each: _option(each, value, f"{where}: options: {each}")
        for each, value in content.get("options", {}).items()
    }
    return Study(
        name,
        content["title"],
        content["about"],
        content["source"],
        Path(content["out"]),
        content["unit"],
        content["example"],
        key,
        tuple(content.get("overrides", ())),
        worlds,
        methods,
        settings,
        groups,
        stages,
        options,
        content.get("facts", {}),
    )


@cache
def published(name: str) -> Mapping[str, Any]:
    """The numbers printed in the paper of a study, as nested mappings and lists.

    Args:
        name: One of `STUDIES`.

    Raises:
        PlainFileError: if published.yaml is damaged.
    """
    return read_published(FOLDER / name / "published.yaml")


def read_published(path: Path) -> Mapping[str, Any]:
    """Published numbers from a file.

    Args:
        path: A YAML file.

    Raises:
        PlainFileError: if it is not a mapping, or a leaf is neither a finite number nor a string.
    """
    content = checked(read_yaml(path), str(path), {"source": "a string"}, ("source",))
    remaining: list[tuple[str, Any]] = [("", content)]
    while remaining:
        place, value = remaining.pop()
        if isinstance(value, dict):
            remaining += [(f"{place}: {key}", each) for key, each in value.items()]
        elif isinstance(value, list):
            remaining += [(f"{place}[{number}]", each) for number, each in enumerate(value)]
        elif isinstance(value, bool) or not isinstance(value, int | float | str) or value in (math.inf, ""):
            raise PlainFileError(f"{path}{place}: expected a finite number or a string; got {shown(value)}")
    return content


def published_value(name: str, *path: str) -> Any:
    """A published number, or a group of them; None if the paper does not print it.

    Args:
        name: One of `STUDIES`.
        path: The keys that lead to it in ``published.yaml``.
    """
    found: Any = published(name)
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


@cache
def texts(name: str) -> Mapping[str, str]:
    """The paragraphs of a study's README, section to text.

    Args:
        name: One of `STUDIES`.

    Raises:
        PlainFileError: if text.md is damaged.
    """
    return read_texts(FOLDER / name / "text.md")


def read_texts(path: Path) -> Mapping[str, str]:
    """Sections of Markdown below headings ``## name``; the lines of a paragraph are joined.

    Args:
        path: The file; text before the first heading is ignored.

    Raises:
        PlainFileError: if a section is empty or occurs twice.
    """
    found: dict[str, str] = {}
    for part in f"\n{text_of(path)}".split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        paragraphs = [" ".join(paragraph.split()) for paragraph in body.split("\n\n") if paragraph.strip()]
        if not paragraphs or name in found:
            fault = "occurs twice" if name in found else "is empty"
            raise PlainFileError(f"{path}: expected each section once, with text; {name} {fault}")
        found[name] = "\n\n".join(paragraphs)
    return found


def _form(
    content: Any, where: str, forms: Mapping[str, str], needed: Sequence[str] = ()
) -> Mapping[str, Any]:
    """`checked`, which also refuses unknown keys, and names that are not strings."""
    seeds = {key: form for key, form in forms.items() if form == "a list of whole numbers"}
    lists = {key: form for key, form in forms.items() if form == "a list"}
    plain = {key: form for key, form in forms.items() if key not in {**seeds, **lists}}
    found = checked(content, where, plain, needed)
    _known([str(key) for key in found], tuple(forms), where)
    for key in lists:
        if key in found and not isinstance(found[key], list):
            raise PlainFileError(f"{where}: {key}: expected a list; got {shown(found[key])}")
    for key, value in found.items():
        if forms[key] == "a mapping" and not all(isinstance(name, str) for name in value):
            odd = next(name for name in value if not isinstance(name, str))
            raise PlainFileError(
                f"{where}: {key}: expected strings as names; got {shown(odd)}: put it in quotes"
            )
    return found


def _known(names: Sequence[str], choices: Sequence[str], where: str) -> None:
    odd = [name for name in names if name not in choices]
    if odd:
        remedy = did_you_mean(odd[0], choices)
        raise PlainFileError(f"{where}: there is no {odd[0]!r}{f': {remedy}' if remedy else ''}")


def _texts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(checked({"names": value}, where, {"names": TEXTS})["names"])


def _seeds(content: Mapping[str, Any], where: str) -> tuple[int, ...] | None:
    if "seeds" not in content:
        return None
    found = content["seeds"]
    if not isinstance(found, list) or not all(type(seed) is int and seed >= 0 for seed in found):
        raise PlainFileError(f"{where}: seeds: expected a list of whole numbers; got {shown(found)}")
    return tuple(found)


def _entry(value: Any, where: str, forms: Mapping[str, str]) -> dict[str, Any]:
    """A world or a method: a list of overrides, or a mapping with overrides and further keys."""
    found = dict(_form({"overrides": value} if isinstance(value, list) else value, where, forms))
    return {**found, "overrides": tuple(found.get("overrides", ()))}


def _world(name: str, value: Any, where: str) -> World:
    return World(name, **{"dataset": name, **_entry(value, where, _WORLD)})


def _method(name: str, value: Any, where: str) -> Method:
    return Method(name, **_entry(value, where, _METHOD))


def _stage(
    name: str,
    value: Any,
    where: str,
    tables: Mapping[str, tuple[str, ...]],
    groups: Mapping[str, tuple[str, ...]],
    default_seeds: tuple[int, ...],
) -> Stage:
    found = _form(value, where, _STAGE, ("about",))
    own = _seeds(found, where)
    blocks = tuple(
        _block(block, f"{where}: jobs[{place}]", tables, groups)
        for place, block in enumerate(found.get("jobs", ()))
    )
    cases = found.get("cases", [])
    if not all(isinstance(case, dict) for case in cases):
        raise PlainFileError(f"{where}: cases: expected a list of mappings")
    return Stage(
        name,
        found["about"],
        found.get("file", ""),
        found.get("alone", False),
        default_seeds if own is None else own,
        blocks,
        tuple(cases),
    )


def _block(
    value: Any,
    where: str,
    tables: Mapping[str, tuple[str, ...]],
    groups: Mapping[str, tuple[str, ...]],
) -> Block:
    found = _form(value, where, _BLOCK)
    chosen: dict[str, tuple[str, ...]] = {}
    for axis, table in tables.items():
        single = axis.removesuffix("s")
        if single in found and axis in found:
            raise PlainFileError(f"{where}: expected {single} or {axis}; got both")
        given = [found[single]] if single in _BLOCK and single in found else found.get(axis, [])
        if not given and axis != "settings":
            raise PlainFileError(f"{where}: expected {single} or {axis}; got neither")
        names = table if given == ALL else groups.get(given, (given,)) if isinstance(given, str) else given
        _known(names, table, f"{where}: {axis}")
        chosen[axis] = tuple(names)
    cross = []
    for axis in found.get("cross", []):
        named = checked(axis, f"{where}: cross", {})
        cross.append({str(key): _texts(each, f"{where}: cross: {key}") for key, each in named.items()})
    return Block(
        **chosen,
        cross=tuple(cross),
        overrides=tuple(found.get("overrides", ())),
        seeds=_seeds(found, where),
        replaceable=frozenset(axis for axis in tables if axis in found),
    )


def _option(key: str, value: Any, where: str) -> StudyOption:
    found = _form(value, where, _OPTION, ("meaning", "kind"))
    _known([found["kind"]], KINDS, f"{where}: kind")
    return StudyOption(key, **found)
