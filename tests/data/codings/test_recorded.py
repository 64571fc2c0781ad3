"""Data cards with texts in place of codes."""

import pytest

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.recorded import bound_in_words, card_in_words

CARD = {
    "context": ["ward=B", "ward=C", "age"],
    "graph": {
        "cliques": [["ward=B", "ward=C"], ["age"], ["s"]],
        "edges": [["ward=B", "s"], ["ward=C", "s"], ["age", "s"]],
    },
    "ranges": {"ward=B": [0.0, 1.0], "ward=C": [0.0, 1.0], "s": [0.0, 2.0], "age": [1.0, 2.0]},
    "codings": {"s": ["low", "medium", "high"], "ward": {"classes": ["A", "B", "C"], "reference": "A"}},
}


def test_a_variable_of_classes_is_one_variable_for_readers():
    found = card_in_words(CARD)
    assert found["context"] == ["ward", "age"]
    assert found["graph"] == {"cliques": [["ward"], ["age"], ["s"]], "edges": [["ward", "s"], ["age", "s"]]}
    assert found["ranges"] == {"s": ["low", "high"], "age": [1.0, 2.0]}


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
