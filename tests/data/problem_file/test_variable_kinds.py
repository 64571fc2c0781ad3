"""Columns of texts in problem files, and how they are coded."""

import pandas as pd

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.problem_file.cases_schema import VariableForm
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.variable_kinds import cases_in_labels, codings_of
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


def test_a_file_says_what_a_saved_task_does():
    codings, *_ = coded(
        ward={"role": "outcome", "kind": "categorical", "desired": ["C", "A"]},
        smoker={"role": "context", "kind": "categorical", "levels": ["yes", "no"], "reference": "no"},
    )
    assert codings["ward"] == Coding("ward", ("A", "B", "C"), None, ("A", "C"))
    assert codings["smoker"] == Coding("smoker", ("yes", "no"), "no")


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


def test_the_texts_of_a_column_with_many_are_not_shown():
    frame = pd.DataFrame({"n": [f"person {place}" for place in range(60)]})
    found = Findings("p")
    codings_of({"n": VariableForm(role="context", kind="categorical")}, ReadTable(frame, "t"), found)
    assert "categorical with 60 values (60 different ones); expected at most 50 classes" in found.faults[0]
    assert "person" not in found.faults[0]


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
