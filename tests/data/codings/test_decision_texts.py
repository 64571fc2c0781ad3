"""Numbers of decisions as texts, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import (
    bound_in_words,
    card_in_words,
    faces_in_words,
    in_numbers,
    line_in_codes,
    line_in_texts,
    recorded_codings,
    recorded_region_in_words,
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
    assert line_in_texts(line_in_codes(line, CODINGS), CODINGS) == line


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
    assert line_in_texts(line, CODINGS) == {
        "given": {"ward": "B"},
        "present": {"smoker": "yes"},
        "alteration": {"smoker": "no"},
        "trace": {"would_set": {"smoker": "yes"}, "search": "x"},
    }
    assert line["present"] == {"smoker": 1.0}
    assert line_in_codes({"given": {"ward": "D"}}, CODINGS) == {"given": {"ward": "D"}}


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


CARD = {
    "context": ["ward=B", "ward=C", "age"],
    "graph": {
        "cliques": [["ward=B", "ward=C"], ["age"], ["s"]],
        "edges": [["ward=B", "s"], ["ward=C", "s"], ["age", "s"]],
    },
    "ranges": {"ward=B": [0.0, 1.0], "ward=C": [0.0, 1.0], "s": [0.0, 2.0], "age": [1.0, 2.0]},
    "codings": {"s": ["low", "medium", "high"], "ward": {"classes": ["A", "B", "C"], "reference": "A"}},
}


def test_arrows_between_indicators_are_not_shown():
    graph = {"cliques": [["ward=B"], ["ward=C"]], "edges": [["ward=B", "ward=C"]]}
    assert card_in_words({**CARD, "graph": graph})["graph"] == {"cliques": [["ward"]], "edges": []}


@pytest.mark.parametrize("odd", [{"context": 3}, {"graph": {"edges": 5}}, {"ranges": {"s": "x"}}, {}])
def test_an_edited_card_stays_as_it_is(odd):
    card = {"codings": CARD["codings"], **odd}
    assert card_in_words(card) == card
    assert card_in_words({"context": ["a"]}) == {"context": ["a"]}


def test_the_bound_of_an_outcome_of_classes_names_those_that_are_desired():
    coding = Coding("status", ("well", "mild", "ill"), None, ("well", "mild"))
    assert bound_in_words(coding, 0.5, False) == "status well or mild"
    card = {"codings": {"status": coding.to_plain()}, "ranges": {"status": [0.0, 1.0]}}
    assert card_in_words(card)["ranges"] == {"status": ["ill", "well or mild"]}


SEVERITY = Coding.of("severity", ["low", "medium", "high"])
ORDERED = {"severity": SEVERITY}


@pytest.mark.parametrize(
    ("names", "normals", "offsets", "said"),
    [
        (["y"], [[1.0]], [140.0], "y is at most 140"),
        (["y"], [[-2.0]], [-1.2], "y is at least 0.6"),
        (["y"], [[1.0], [-1.0]], [140.0, -100.0], "y is between 100 and 140"),
        (["x", "y"], [[0.0, 1.0]], [140.0], "y is at most 140"),
        (["severity"], [[1.0]], [1.5], "severity is at most medium"),
        (["severity"], [[1.0]], [0.5], "severity is low"),
        # What is not short is not said.
        (["severity"], [[1.0], [-1.0]], [1.5, -0.5], ""),
        (["x", "y"], [[1.0, 1.0]], [140.0], ""),
        (["x", "y"], [[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], ""),
        (["y"], [[1.0], [1.0]], [140.0, 130.0], ""),
        (["y" * 70], [[1.0]], [1.0], ""),
        (["y"], [], [], ""),
    ],
)
def test_one_bound_or_a_level_is_said(names, normals, offsets, said):
    assert faces_in_words(names, normals, offsets, ORDERED) == said


@pytest.mark.parametrize(
    "region",
    [None, [], {}, {"names": ["y"]}, {"names": ["y"], "normals": [["a"]], "offsets": [1.0]},
     {"names": ["y", "x"], "normals": [[1.0]], "offsets": [1.0]}, {"names": 3, "normals": 4, "offsets": 5}],
)  # fmt: skip
def test_a_card_that_was_edited_says_nothing(region):
    assert recorded_region_in_words({"region": region}) == ""
    whole = {"names": ["y"], "normals": [[1.0]], "offsets": [2.0]}
    assert recorded_region_in_words({"region": whole}) == "y is at most 2"
