"""Schemas: what is read of plain data, how paths and values are shown, and that nothing is converted on the
quiet."""

from typing import Annotated

import numpy as np
import pytest
import torch
from pydantic import Discriminator, Field, Tag

from rehearsal_torch.files.bounded_yaml import DEPTH, VALUES
from rehearsal_torch.files.schema import (
    Bounds,
    Fault,
    FaultsError,
    Name,
    Names,
    Number,
    Schema,
    Sides,
    form,
    line_at,
    lines_of,
    list_of,
    mapping,
    meant,
    plain_of,
    read,
    suggested,
)


class Inner(Schema):
    """A part of a part."""

    depth: Number


class Outer(Schema):
    """A schema with each of the building blocks."""

    name: Name = Field(description="what it is called")
    names: Names = Field(default_factory=list)
    number: Number = 0.0
    bounds: Bounds | None = None
    sides: Sides | None = None
    inner: Inner | None = None


def test_what_is_right_is_read_with_its_defaults():
    found, faults = read(
        Outer,
        {
            "name": 7,
            "names": "a",
            "number": "1e3",
            "bounds": (0, 2),
            "sides": [None, float("inf")],
            "inner": {"depth": 1},
        },
    )
    assert faults == []
    assert (found["name"], found["names"], found["number"], found["bounds"], found["sides"]) == (
        "7",
        ["a"],
        1000.0,
        [0.0, 2.0],
        [None, None],
    )
    assert found["inner"].depth == 1.0
    assert read(Outer, {"name": "a"})[0]["names"] == []


@pytest.mark.parametrize(
    ("plain", "fault"),
    [
        ({}, "name: missing; expected what it is called"),
        ({"name": None}, "name: expected a name; got None"),
        (
            {"name": True},
            "name: expected a name; got True: YAML reads yes, no, on, off, true and false as Booleans, "
            "so put the name in quotes",
        ),
        ({"name": 1.5}, "name: expected a name; got 1.5: put it in quotes"),
        ({"name": "a\u2028b"}, "name: expected a name of 1 to 200 letters in one line; got 'a\\u2028b'"),
        ({"name": "a", "names": ["b", ["c"]]}, "names[1]: expected a name; got ['c']"),
        ({"name": "a", "names": {"b": 1}}, "names: expected a list of names; got {'b': 1}"),
        (
            {"name": "a", "number": float("nan")},
            "number: expected a finite number, at most 1e+150 in size; got nan",
        ),
        (
            {"name": "a", "number": 10**400},
            f"number: expected a finite number, at most 1e+150 in size; got 1{'0' * 59} ...",
        ),
        ({"name": "a", "number": "1.5"}, "number: expected a number; got '1.5': remove the quotes"),
        ({"name": "a", "number": "1,5"}, "number: expected a number; got '1,5': write a decimal point"),
        ({"name": "a", "number": "a, b"}, "number: expected a number; got 'a, b': write a number; strings"),
        (
            {"name": "a", "sides": [float("inf"), None]},
            "sides: expected [lower, upper], null for an open side; got [inf, None]: an open side is null",
        ),
        ({"name": "a", "inner": {"depth": 1, "width": 2}}, "inner.width: unknown key; leave it out"),
        ({"name": "a", "nam": 1}, "nam: unknown key; did you mean 'name'?"),
        ({"name": {"b"}}, "name: expected a name; got {'b'}"),
        ([], ": expected a mapping"),
    ],
)
def test_what_is_wrong_is_said_with_path_expected_and_got(plain, fault):
    assert fault.lstrip(": ") in " ".join(read(Outer, plain)[1])


def test_parts_without_a_fault_are_read_beside_those_with_one():
    found, faults = read(Outer, {"name": "a", "number": "many", "names": ["b"]})
    assert found == {"name": "a", "names": ["b"]}
    told = "write a number; strings are coded as numbers, in the table and here"
    assert faults == [f"number: expected a number; got 'many': {told}"]


def test_arrays_and_tensors_become_lists_and_sizes_are_bounded():
    assert plain_of({"a": (1, torch.ones(2)), "b": np.float64(0.5), "c": np.eye(1)}) == {
        "a": [1, [1.0, 1.0]],
        "b": 0.5,
        "c": [[1.0]],
    }
    deep = []
    for _ in range(50):
        deep = [deep]
    for large in (deep, [0] * 300_000, torch.zeros(600, 600)):
        with pytest.raises(FaultsError, match="200000 values"):
            plain_of(large)
        assert "200000 values" in read(Outer, large)[1][0]


class Formed(Schema):
    """A schema with forms, lists of a bounded length and mappings."""

    either: (
        Annotated[
            Annotated[dict[Name, Number], Tag(form("<name>"))]
            | Annotated[Inner, Tag(form("depth", "width"))],
            Discriminator(lambda plain: form("depth", "width") if "depth" in plain else form("<name>")),
            mapping("a mapping of either form"),
        ]
        | None
    ) = Field(default=None, description="either form")
    few: Annotated[list[Number], Field(min_length=2, max_length=3), list_of("a list of two or three")] = (
        Field(default_factory=lambda: [0.0, 0.0])
    )
    flag: bool = False
    of: dict[Name, Number] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("plain", "faults"),
    [
        ({"either": 3}, ["either: expected a mapping of either form; got 3"]),
        ({"either": {}}, ["either: expected a mapping of either form; got {}"]),
        ({"either": {1: 2, "1": 3, "2": 1}}, ["either: 1 occurs twice: keep one"]),
        ({"either": {"depth": 1, "widht": 2}}, ["either.widht: unknown key; did you mean 'width'?"]),
        ({"either": {"a": "x"}}, ["either.a: expected a number; got 'x': write a number; strings are"]),
        ({"few": [1]}, ["few: expected at least 2 entries; got 1"]),
        ({"few": [1, 2, 3, 4]}, ["few: expected at most 3 entries; got 4"]),
        ({"few": "ab"}, ["few: expected a list of two or three; got 'ab': write [ab]"]),
        ({"few": 3}, ["few: expected a list of two or three; got 3"]),
        ({"few": None}, ["few: expected at least 2 entries; got 0"]),
        ({"flag": "yes"}, ["flag: expected true or false; got 'yes'"]),
        ({"of": [1]}, ["of: expected a mapping, {name: value}; got [1]"]),
        ({"of": {True: 1}}, ["of: a name there: expected a name; got True"]),
        ({"of": {"a": None}, "flag": 1}, ["flag: expected true or false; got 1", "of.a: expected a number"]),
    ],
)
def test_forms_lists_and_mappings_are_refused_with_what_was_expected(plain, faults):
    found = read(Formed, plain)[1]
    assert len(found) == len(faults)
    for said, wanted in zip(sorted(found), faults, strict=True):
        assert said.startswith(wanted)


def test_what_fits_a_form_is_read():
    assert read(Formed, {"either": {"depth": 1}})[0]["either"].depth == 1.0
    found, faults = read(Formed, {"either": {"a": 1}, "few": [1, 2, 3], "of": {"a": 2}, "flag": True})
    assert faults == []
    assert (found["either"], found["few"], found["of"], found["flag"]) == (
        {"a": 1.0},
        [1.0, 2.0, 3.0],
        {"a": 2.0},
        True,
    )
    assert read(Formed, Formed())[0] == read(Formed, {})[0]


@pytest.mark.parametrize(
    ("key", "value", "read_as"),
    [
        ("name", "x" * 200, "x" * 200),
        ("name", 10**18 - 1, str(10**18 - 1)),
        ("name", -5, "-5"),
        ("names", 7, ["7"]),
        ("names", None, []),
        ("number", 1e150, 1e150),
        ("number", -1e150, -1e150),
        ("number", " 2.5E-1 ", 0.25),
        ("bounds", [1, 1], [1.0, 1.0]),
        ("sides", [1, 1], [1.0, 1.0]),
        ("sides", [None, 2], [None, 2.0]),
        ("sides", [float("-inf"), 2], [None, 2.0]),
        ("sides", [-3, None], [-3.0, None]),
    ],
)
def test_what_is_just_allowed_is_read(key, value, read_as):
    found, faults = read(Outer, {"name": "a", key: value})
    assert faults == []
    assert found[key] == read_as


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("name", "x" * 201, "name: expected a name of 1 to 200 letters in one line"),
        ("name", "  ", "name: expected a name of 1 to 200 letters in one line; got ' '"),
        ("name", 10**18, "name: expected a name; got 1000000000000000000: put it in quotes"),
        ("names", 1.5, "names: expected a list of names; got 1.5"),
        ("names", {"b"}, "names: expected a list of names; got {'b'}"),
        ("names", ["b", "c", "b"], "names: names b twice: keep one"),
        ("number", 1.1e150, "number: expected a finite number, at most 1e+150 in size"),
        ("number", True, "number: expected a number; got True"),
        ("number", [1], "number: expected a number; got [1]"),
        ("bounds", [1], "bounds: expected [lower, upper], two finite numbers; got [1]"),
        ("bounds", [1, 2, 3], "bounds: expected [lower, upper], two finite numbers; got [1, 2, 3]"),
        ("bounds", "12", "bounds: expected [lower, upper], two finite numbers; got '12'"),
        ("bounds", [None, 2], "bounds: expected a number; got None"),
        ("bounds", [2, 1], "bounds: expected lower <= upper; got [2, 1]: swap them"),
        ("sides", [2, 1], "sides: expected lower <= upper; got [2, 1]: swap them"),
        ("sides", [None, float("-inf")], "sides: expected [lower, upper], null for an open side"),
        ("sides", [True, 1], "sides: expected a number; got True"),
    ],
)
def test_what_is_just_not_allowed_is_refused(key, value, said):
    found, faults = read(Outer, {"name": "a", key: value})
    assert len(faults) == 1
    assert faults[0].startswith(said)
    assert key not in found


def test_a_key_inside_a_part_is_named_with_its_place():
    said = read(Outer, {"name": "a", "inner": {}})[1]
    assert said == ["inner.depth: missing: write it beside the other keys"]
    assert read(Outer, {"name": "a", "names": [True, "b", True]})[1][0].startswith(
        "names[0]: expected a name"
    )
    assert read(Outer, {"name": "a", "qu ux": 1})[1] == [
        "qu ux: unknown key; there are name, names, number, bounds, sides, inner"
    ]


def test_as_deep_and_as_many_as_is_allowed_is_read():
    nested = 0
    for _ in range(DEPTH):
        nested = [nested]
    assert plain_of(nested) == nested
    with pytest.raises(FaultsError):
        plain_of([nested])
    assert len(plain_of([0] * (VALUES - 1))) == VALUES - 1
    with pytest.raises(FaultsError):
        plain_of([0] * VALUES)
    assert len(plain_of(np.zeros(VALUES - 1))) == VALUES - 1
    with pytest.raises(FaultsError, match="got an array of shape"):
        plain_of(np.zeros(VALUES))
    assert plain_of({"a": "text", "b": b"x", "c": (True, None)}) == {
        "a": "text",
        "b": b"x",
        "c": [True, None],
    }


def test_suggestions_are_the_nearest_whatever_the_case():
    assert suggested("COLOUR", ["size", "colour"]) == "colour"
    assert suggested("Colur", ["COLOUR", "size"]) == "COLOUR"
    assert suggested("rate", ["rates", "Rate", "rate1"]) == "Rate"
    assert suggested("value", ["scale", "range", "levels"]) is None
    assert suggested("abcx", ["abcd"], similar=0.9) is None
    many = [f"k{place:02d}xyz" for place in range(40)]
    assert meant("quite other", many) == f"there are {', '.join(many[:30])}"


TEXT = """# a comment
data: t.csv

variables:
  a: {role: action, range: [0,
       1]}
  "two words.x": other
graph:
  - a -> b
  - b -> c
"""


def test_every_key_and_entry_has_its_line():
    lines = lines_of(TEXT)
    assert lines["data"] == 2
    assert lines["variables.a"] == lines["variables.a.role"] == lines["variables.a.range[0]"] == 5
    assert lines["variables.a.range[1]"] == 6
    assert lines["variables.'two words.x'"] == 7
    assert (lines["graph"], lines["graph[0]"], lines["graph[1]"]) == (8, 9, 10)


def test_a_path_that_does_not_exist_has_the_line_of_what_would_hold_it():
    lines = lines_of(TEXT)
    assert line_at(lines, "variables.a.levels[3]") == 5
    assert line_at(lines, "variables.b") == 4
    assert line_at(lines, "graph[7].x") == 8
    assert line_at(lines, "desired") is None
    assert lines_of("just text") == {}
    assert lines_of("") == {}


class Crossed(Schema):
    """Two numbers of which the first is the smaller."""

    low: Number
    high: Number
    more: Number = 0.0

    @classmethod
    def between(cls, parts):
        if {"low", "high"} <= set(parts) and parts["low"] > parts["high"]:
            yield Fault("high", "lies below low")


def test_faults_between_parts_are_told_beside_those_of_others():
    assert read(Crossed, {"low": 1, "high": 2})[1] == []
    found, faults = read(Crossed, {"low": 3, "high": 2, "more": "x"})
    assert found == {"low": 3.0, "high": 2.0}
    assert [each.path for each in faults] == ["more", "high"]
    assert [each.path for each in read(Crossed, {"low": 3, "high": 2})[1]] == ["high"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("variables.dose.range[0]", "box.dose[0]"),
        ("variables.dose", "actions.dose"),
        ("variables.dose_2", "variables.dose_2"),
        ("graph", "graph"),
    ],
)
def test_a_fault_is_told_with_the_key_that_was_written(path, told):
    names = {"variables.dose": "actions.dose", "variables.dose.range": "box.dose"}
    fault = Fault(path, "is wrong", "unknown").called(names)
    assert (fault.path, fault.words, fault.kind) == (told, "is wrong", "unknown")
