"""Schemas: what is read of plain data, how paths and values are shown, and that nothing is converted on the
quiet."""

import numpy as np
import pytest
import torch
from pydantic import Field

from rehearsal_torch.files.schema import (
    Bounds,
    FaultsError,
    Name,
    Names,
    Number,
    Schema,
    Sides,
    listed,
    meant,
    path_of,
    plain_of,
    read,
    shown,
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


def test_words_are_short_and_faults_are_counted():
    assert path_of(("graph", "parents", "two words", 0, "a.b")) == "graph.parents.two words[0].'a.b'"
    assert shown("x" * 100).endswith(" ...")
    assert meant("colr", ["colour", "size"]) == "did you mean 'colour'?"
    assert meant("weight", ["colour", "size"]) == "there are colour, size"
    assert listed("it", ["a", "b"]) == "it: 2 faults, nothing was fitted\n- a\n- b"
    assert str(FaultsError(["a", "b"])) == "a; b"
