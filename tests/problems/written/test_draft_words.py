"""Names and texts as a first draft writes them."""

import pytest
import yaml

from rehearsal_torch.graphs.written_graph import graph_of
from rehearsal_torch.problems.written.draft_words import (
    ACTIONS,
    has_quotes,
    has_word,
    level,
    node,
    scalar,
    term,
    value,
    writable,
)
from rehearsal_torch.spaces.inequalities import linear

NAMES = ["x", "blood pressure", "and", "a:b", "yes", "1st", "größe", "a`b", "#1: {x}"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_back(name):
    assert yaml.safe_load(f"{{{scalar(name)}: 1}}") == {name: 1}
    assert list(linear(f"2*{term(name)}").weights) == [name]
    assert set(graph_of({"graph": [f"{node(name)} -> z"]}).names) == {name, "z"}
    assert yaml.safe_load(f"limits: {value(f'{term(name)} <= 1')}") == {"limits": f"{term(name)} <= 1"}
    assert level("low") == "low"
    assert level("very low") == '"very low"'


def test_words_stand_between_signs():
    assert has_word("drug_dose (mg)", ACTIONS)
    assert not has_word("overdosed", ACTIONS)


def test_some_columns_cannot_be_variables():
    assert writable("a")
    assert not any(map(writable, ["", " ", "a\nb", "x" * 201, "Unnamed: 3"]))


def test_arrows_cannot_name_what_has_double_quotes():
    assert has_quotes('the "y"')
    assert not has_quotes("the `y`, it's")
    assert value("status in {a, b}") == "status in {a, b}", "no quotes where YAML needs none"
