"""Actions of classes: indicators that are set together."""

import math
from itertools import product

import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.one_hot_actions import (
    candidate_sets,
    combination_count,
    combinations,
    in_indicators,
    in_places,
    no_class,
    offered_places,
    with_classes_in_turn,
)

DRUG, SITE = Coding("drug", ("A", "B", "C"), "B"), Coding("site", ("x", "y", "z", "u"), "u")
SMOKER = Coding("smoker", ("no", "yes"))
CODINGS = (DRUG, SITE, SMOKER)


@st.composite
def tables(draw):
    """Variables of classes and of levels, with their columns in any order."""
    codings, levels = [], {}
    for place in range(draw(st.integers(1, 2))):
        size = draw(st.integers(3, 5))
        classes = tuple(f"c{each}" for each in range(size))
        codings.append(Coding(f"v{place}", classes, draw(st.sampled_from(classes))))
        levels |= dict.fromkeys(codings[-1].columns, (0.0, 1.0))
    for place in range(draw(st.integers(0, 2))):
        levels[f"w{place}"] = tuple(map(float, range(draw(st.integers(1, 3)))))
    names = draw(st.permutations(list(levels)))
    return tuple(codings), {name: levels[name] for name in names}


@given(tables())
def test_combinations_are_the_products_in_which_at_most_one_indicator_is_1(table):
    codings, levels = table
    names = list(levels)

    def feasible(values):
        of = dict(zip(names, values, strict=True))
        return all(sum(of[column] for column in each.columns) <= 1 for each in codings)

    found = combinations(levels, codings)
    assert len(found) == len(set(found)) == combination_count(levels, codings)
    assert set(found) == {values for values in product(*levels.values()) if feasible(values)}
    assert no_class(names, torch.tensor(found), codings) is None
    for values in list(product(*levels.values()))[:50]:
        assert (no_class(names, torch.tensor(values), codings) is None) == feasible(values)


@given(tables())
def test_cycled_points_have_every_combination_of_classes(table):
    codings, levels = table
    names = list(levels)
    number = math.prod(len(each.levels) for each in codings)
    points = torch.full((number, len(names)), 7.0, dtype=torch.float64)
    made = with_classes_in_turn(points, names, codings)
    assert no_class(names, made, codings) is None
    places = [place for place, name in enumerate(names) if "=" in name]
    others = [place for place, name in enumerate(names) if "=" not in name]
    assert len(made[:, places].unique(dim=0)) == number
    assert bool((made[:, others] == 7.0).all())


def test_only_the_classes_that_are_offered_are_combined():
    levels = {"drug=A": (0.0, 1.0), "drug=C": (0.0,), "smoker": (0.0, 1.0)}
    assert offered_places(DRUG, levels) == [0, 1]
    assert offered_places(DRUG, {}) == [0, 1, 2]
    wanted = {(1.0, 0.0, 0.0), (1.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)}
    assert set(combinations(levels, CODINGS)) == wanted
    assert combination_count(levels, CODINGS) == 4
    made = with_classes_in_turn(torch.ones(4, 3, dtype=torch.float64), list(levels), CODINGS, levels)
    assert made.tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]] * 2


@given(tables())
def test_places_are_turned_into_indicators_and_back(table):
    codings, levels = table
    for values in combinations(levels, codings)[:40]:
        given = dict(zip(levels, values, strict=True))
        placed = in_places(given, codings)
        assert {each.name for each in codings} <= set(placed)
        assert in_indicators(placed, codings) == given


def test_of_indicators_all_are_altered_or_none():
    assert candidate_sets(("a", "b"), (), 1) == [("a",), ("b",)]
    assert candidate_sets(("a", "b"), (), 2) == [("a",), ("b",), ("a", "b")]
    assert candidate_sets(("drug=A", "a", "drug=C"), CODINGS, 3) == [
        ("drug=A", "drug=C"),
        ("a",),
        ("drug=A", "a", "drug=C"),
    ]
    assert candidate_sets(("drug=A", "drug=C"), CODINGS, 1) == []
