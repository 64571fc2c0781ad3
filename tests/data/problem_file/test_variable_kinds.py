"""Columns of texts in problem files, and how they are coded."""

import pandas as pd
import pytest

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.problem_file.cases_schema import VariableForm
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.variable_kinds import (
    cases_in_labels,
    codings_of,
    has_texts,
    only_texts,
)
from rehearsal_torch.data.tables.reader import ReadTable

FRAME = pd.DataFrame(
    {
        "ward": ["A", "B", "B", "C", None],
        "smoker": ["yes", "no", "no", "yes", "no"],
        "severity": ["low", "high", "medium", "low", "low"],
        "mixed": ["1", "2", "3+", "1", "2"],
        "number": [1, 2, 3, 3, 3],
        "free": ["x y", "a", "b", "c", "d"],
    }
)
ROWS = ReadTable(FRAME, "t.csv")


def coded(**variables):
    found = Findings("p")
    forms = {name: VariableForm(**about) for name, about in variables.items()}
    return (*codings_of(forms, ROWS, found), found.faults)


def test_each_kind_has_its_coding():
    codings, broken, notes, faults = coded(
        ward={"role": "context", "kind": "categorical"},
        smoker={"role": "action", "kind": "categorical", "levels": [True, False]},
        severity={"role": "outcome", "kind": "ordinal", "levels": ["low", "medium", "high"]},
        mixed={"role": "other", "kind": "ordinal", "levels": [1.0, 2.0, "3+"]},
        number={"role": "context", "kind": "categorical", "reference": 1.0},
    )
    assert (broken, faults) == (set(), [])
    assert codings == {
        "ward": Coding("ward", ("B", "A", "C"), "B"),
        "smoker": Coding("smoker", ("yes", "no")),
        "severity": Coding("severity", ("low", "medium", "high")),
        "mixed": Coding("mixed", ("1", "2", "3+")),
        "number": Coding("number", ("3", "1", "2"), "1"),
    }
    assert notes == [
        "ward is coded B, A, C, with B as the reference, the most frequent class (reference: states another)"
    ]


def test_only_some_classes_may_be_offered_one_of_which_is_the_reference():
    codings, broken, notes, faults = coded(
        ward={"role": "action", "kind": "categorical", "offered": ["C", "A"]},
        severity={
            "role": "action",
            "kind": "ordinal",
            "levels": ["low", "medium", "high"],
            "offered": ["medium"],
        },
    )
    assert (broken, faults) == (set(), [])
    # B is the most frequent class of all, A the first of those that are offered.
    assert codings["ward"] == Coding("ward", ("B", "A", "C"), "A")
    assert notes == [
        "ward is coded B, A, C, with A as the reference, the most frequent class of those offered "
        "(reference: states another)"
    ]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"offered": ["A", "Bb"]}, "offered: expected some of A, B, C; got 'Bb'; did you mean 'B'?"),
        ({"offered": ["A", "A"]}, "offered: expected some of A, B, C, each once; got A, A"),
        ({"offered": []}, "offered: expected some of A, B, C, each once; got none"),
        (
            {"offered": ["A", "C"], "reference": "B"},
            "reference: B is not offered: name one of A, C, or leave reference out",
        ),
    ],
)
def test_what_is_offered_wrongly_is_told(about, words):
    codings, broken, _, faults = coded(ward={"role": "action", "kind": "categorical", **about})
    assert (codings, broken) == ({}, {"ward"})
    assert [each.partition("variables.ward.")[2] for each in faults] == [words]


def test_what_is_not_stated_is_sorted_and_said():
    codings, _, notes, _ = coded(smoker={"role": "context", "kind": "binary"})
    assert codings["smoker"].levels == ("no", "yes")
    assert notes == ["smoker is coded no = 0, yes = 1, in alphabetical order (levels: [...] states another)"]


@pytest.mark.parametrize(
    ("name", "about", "words"),
    [
        (
            "severity",
            {"kind": "binary"},
            "variables.severity.kind: expected two texts; got 3, high, low, medium",
        ),
        (
            "smoker",
            {"kind": "binary", "levels": ["no", "yes", "x"]},
            "variables.smoker.levels: expected two texts; got 3",
        ),
        (
            "severity",
            {"kind": "ordinal"},
            "write levels: [...] from the lowest to the highest of high, low, medium",
        ),
        (
            "severity",
            {"kind": "ordinal", "levels": ["low", "high"]},
            "expected one of low, high; got 'medium' in line 4",
        ),
        (
            "ward",
            {"kind": "categorical", "levels": ["A", "B", "C", "D", "NA"]},
            "no row has D, NA, so that nothing is known of it; cells such as NA",
        ),
        ("ward", {"kind": "categorical", "reference": "Z"}, "the reference 'Z' is none of A, B, C"),
        ("ward", {"kind": "continuous"}, "the column has texts (A, B, C), and the kind is continuous"),
        ("ward", {"kind": "integer", "levels": ["A"]}, "levels are texts, and the kind is integer"),
        ("mixed", {"kind": "categorical"}, "has numbers and texts: '1' in line 2, '3+' elsewhere"),
        ("ward", {"kind": "categorical", "role": "other"}, "a method has no model of classes"),
        ("smoker", {"kind": "binary", "levels": ["no", "no"]}, "'no' occurs twice"),
    ],
)
def test_faults(name, about, words):
    codings, broken, _, faults = coded(**{name: {"role": "context", **about}})
    assert (codings, broken) == ({}, {name})
    (told,) = faults
    assert words in told


def test_the_texts_of_a_column_with_many_are_not_shown():
    frame = pd.DataFrame({"n": [f"person {place}" for place in range(60)]})
    found = Findings("p")
    codings_of({"n": VariableForm(role="context", kind="categorical")}, ReadTable(frame, "t"), found)
    assert "categorical with 60 values (60 different ones); expected at most 50 classes" in found.faults[0]
    assert "person" not in found.faults[0]


def test_unused_texts():
    assert only_texts(FRAME, "free")
    assert not only_texts(FRAME, "mixed")
    assert not only_texts(FRAME, "number")
    assert not only_texts(FRAME, "nothing")
    assert has_texts([1.0, True])
    assert not has_texts([1.0])


def test_cases_state_levels_and_numbers():
    codings = {"smoker": Coding("smoker", ("no", "yes")), "ward": Coding("ward", ("B", "A", "C"), "A")}
    frame = pd.DataFrame({"smoker": [True, False], "ward": ["C", "D"], "age": [True, 3]}, index=[-1, 0])
    found = Findings("p")
    labels, sound = cases_in_labels(ReadTable(frame, "the list"), codings, ["ward", "age"], found, ["age"])
    assert labels["smoker"].tolist() == [1, 0]
    assert sound == ["age"]
    assert [each.split(": ", 2)[2] for each in found.faults] == [
        "age: expected a number; got True in line 1: write 0 or 1",
        "ward: expected one of B, A, C; got 'D' in line 2: no row to learn from has it, so that nothing is "
        "known of it: correct it, or leave the case out",
    ]
