"""Numbers of decisions as texts, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.texts import (
    in_line,
    in_numbers,
    recorded_codings,
    said,
    sentence_in_words,
    worded,
)

CODINGS = {"smoker": Coding("smoker", ("no", "yes")), "ward": Coding("ward", ("A", "B", "C"), "A")}


@given(st.sampled_from(["no", "yes"]), st.sampled_from(["A", "B", "C"]), st.floats(-9, 9))
def test_texts_come_back(smoker, ward, age):
    values = {"smoker": smoker, "ward": ward, "age": age}
    codes = in_numbers(values, CODINGS)
    assert set(codes) == {"smoker", "ward=B", "ward=C", "age"}
    assert worded(codes, CODINGS) == values
    line = {"given": values, "alteration": None, "identity": "1"}
    assert said(in_line(line, CODINGS), CODINGS) == line


def test_what_is_no_code_stays_a_number():
    assert worded({"smoker": 0.5, "ward=B": 1.0}, CODINGS) == {"smoker": 0.5, "ward=B": 1.0}
    assert in_numbers({"smoker": 1.0}, CODINGS) == {"smoker": 1.0}
    with pytest.raises(ValueError, match="ward: expected one of A, B, C; got 'D'"):
        in_numbers({"ward": "D"}, CODINGS)


def test_a_line_says_texts_in_all_its_parts():
    line = {
        "given": {"ward=B": 1.0, "ward=C": 0.0},
        "present": {"smoker": 1.0},
        "alteration": {"smoker": 0.0},
        "trace": {"would_set": {"smoker": 1.0}, "search": "x"},
    }
    assert said(line, CODINGS) == {
        "given": {"ward": "B"},
        "present": {"smoker": "yes"},
        "alteration": {"smoker": "no"},
        "trace": {"would_set": {"smoker": "yes"}, "search": "x"},
    }
    assert line["present"] == {"smoker": 1.0}
    assert in_line({"given": {"ward": "D"}}, CODINGS) == {"given": {"ward": "D"}}


def test_recorded_codings_that_cannot_be_read_are_left_out():
    plain = {"smoker": ["no", "yes"], "x": 3, "ward": {"classes": ["A", "B", "C"], "reference": "A"}}
    assert recorded_codings(plain) == CODINGS
    assert recorded_codings("x") == {}


def test_a_sentence_about_the_graph_names_the_variable_once():
    coding = {"ward": Coding("ward", ("A", "B", "BB", "C"), "C"), "smoker": CODINGS["smoker"]}
    said = (
        "ward=A, ward=B, ward=BB and y have a common cause that is not blocked by smoker "
        "(ward=A -> y accompanies ward=A <-> y) (ward=BB -> y accompanies ward=BB <-> y) "
        "(smoker -> y accompanies smoker)"
    )
    assert sentence_in_words(said, coding) == (
        "ward and y have a common cause that is not blocked by smoker "
        "(ward -> y accompanies ward <-> y) (smoker -> y accompanies smoker)"
    )
    assert sentence_in_words("smoker=A and x", coding) == "smoker=A and x"
