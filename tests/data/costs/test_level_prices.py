"""Prices of levels and classes: by name, without those that are there already; faults with what was meant."""

import pytest
import torch

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.costs.action_cost import ActionCost, CaseCosts, CostTable, LevelPrices

DRUG = Coding("drug", ("A", "B", "C"), "B")
CLASSES = {"drug=A": (0.0, 1.0), "drug=C": (0.0, 1.0)}
ANSWER = Coding("answer", ("no", "yes"))
PRICES = {"A": 5.0, "B": 12.0, "C": 30.0}


def of_drug(**more):
    return ActionCost(levels=LevelPrices.of("drug", PRICES, DRUG, CLASSES), **more)


def in_case(actions, **present):
    return CaseCosts.of(actions, 100.0, present, {})


@pytest.mark.parametrize(
    ("present", "costs"),
    [
        # Of A, B and C, in the columns drug=A and drug=C.
        ({"drug=A": 1.0, "drug=C": 0.0}, [0.0, 13.0, 31.0]),
        ({"drug=A": 0.0, "drug=C": 0.0}, [6.0, 0.0, 31.0]),
        ({"drug=A": 0.0, "drug=C": 1.0}, [6.0, 13.0, 0.0]),
        # Unknown: from the usual one, C.
        ({}, [6.0, 13.0, 0.0]),
    ],
)
def test_a_change_to_a_class_costs_its_price_whatever_it_is_changed_from(present, costs):
    case = in_case({"drug": of_drug(fixed=1.0, usual=2.0)}, **present)
    rows = [(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)]
    assert [case.of_setting(("drug=A", "drug=C"), row) for row in rows] == costs


def test_levels_and_units_add_up_in_several_cases():
    answer = ActionCost(levels=LevelPrices.of("answer", {True: 7.0, "no": 2.0}, ANSWER, {"answer": (0, 1)}))
    actions = {"drug": of_drug(usual=0.0), "answer": answer, "dose": ActionCost(2.0, 1.0)}
    one = in_case(actions, answer=0.0, dose=1.0)
    other = in_case(actions, answer=1.0, dose=1.0, **{"drug=A": 0.0, "drug=C": 1.0})
    table = CostTable.of([one, other], ["dose", "drug=A", "answer", "drug=C"])
    found = table(torch.tensor([[[3.0, 0.0, 1.0, 1.0]] * 2, [[0.0, 1.0, 0.0, 0.0]] * 2]).double())
    assert found.tolist() == [[4 + 30 + 7, 4.0], [1.0, 1 + 5 + 2]]
    # An alteration without the classes has no cost of them.
    assert CostTable.of([one], ["dose"])(torch.tensor([[3.0]]).double()).tolist() == [4.0]


def test_numbers_have_prices_and_a_present_value_between_them_is_none_of_them():
    prices = LevelPrices.of("dose", {"0": 1.0, 2: 3.0, 0.5: 2.0}, None, {"dose": (0.0, 0.5, 2.0)})
    assert prices.to_plain() == {"0": 1.0, "0.5": 2.0, "2": 3.0}
    cost = ActionCost(levels=prices)
    at = [in_case({"dose": cost}, dose=now).of_setting(["dose"], [2.0]) for now in (0.5, 2.0, 1.9)]
    assert at == [3.0, 0.0, 3.0]
    assert cost.words("mg") == "1 to 0, 2 to 0.5, 3 to 2"


def test_what_cannot_be_set_needs_no_price():
    some = LevelPrices.of("drug", {"A": 1.0, "B": 2.0}, DRUG, {"drug=A": (0.0, 1.0), "drug=C": (0.0,)})
    assert some.prices == (1.0, 2.0, None)
    # From C, which is not offered.
    assert some.changes(2.0, 0.0) == [1.0, 2.0, 0.0]
    assert some.words() == "1 to A, 2 to B"


def test_the_usual_class_is_the_most_frequent_one():
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    assert of_drug().levels.usual(rows) == 2.0
    # In each column 0 is the most frequent value, and together they are B, which no row has.
    assert of_drug().levels.usual(rows[:2]) == 0.0


def test_free_prices_are_free():
    free = LevelPrices.of("drug", dict.fromkeys("ABC", 0.0), DRUG, CLASSES)
    assert ActionCost(levels=free, usual=0.0).free
    assert in_case({"drug": ActionCost(levels=free, usual=0.0)}) is None
    assert not ActionCost(levels=free, fixed=1.0).free
