"""Costs of changes: up, down, at all; from the present value or from the usual one."""

import pytest
import torch

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.cost_table import CostTable, cost_of_setting
from rehearsal_torch.data.costs import ActionCost, CaseCosts, ExperimentCosts, LevelPrices, weighing
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask

BMI = ActionCost(4.0, 1.0, 10.0, usual=26.0)


def of(actions, worth=None, present=None, per_unit=None):
    return CaseCosts.of(actions, worth, present or {}, per_unit or {})


@pytest.mark.parametrize(("value", "cost"), [(30, 0), (32, 18), (27, 13), (30 + 1e-13, 0)])
def test_a_change_costs_by_direction_and_at_all(value, cost):
    assert cost_of_setting(of({"bmi": BMI}, present={"bmi": 30.0}), ["bmi"], [value]) == pytest.approx(cost)


def test_an_experiment_costs_its_settings_and_what_any_costs():
    prices = LevelPrices.of("dose", {"0": 0.0, "2": 7.0, "5": 4.0}, None, {"dose": (0.0, 2.0, 5.0)})
    heat = ActionCost(2.0, 1.0, 3.0, usual=4.0)
    costs = ExperimentCosts(("heat", "dose"), {"heat": heat, "dose": ActionCost(levels=prices)}, 5.0)
    settings = torch.tensor([[4, 0], [6, 2], [3, 1.8], [4, 5]], dtype=torch.float64)
    expected = [5.0, 5 + 7 + 7, 5 + 4 + 7, 5 + 4]
    assert costs.of(settings).tolist() == costs.of(settings.numpy()).tolist() == expected
    assert costs.least({"heat": (0, 10), "dose": (0, 2, 5)}) == 5
    assert costs.least({"heat": (6, 10), "dose": (2, 5)}) == 5 + 7 + 4
    plain = ExperimentCosts(("dose",), {"dose": ActionCost(3.0, 3.0)})
    assert plain.of(settings[1:, 1:]).tolist() == pytest.approx([6.0, 5.4, 15.0])


def test_where_no_present_value_is_known_changes_count_from_the_usual_one():
    assert cost_of_setting(of({"bmi": BMI}), ["bmi"], [28.0]) == 18.0


def test_a_table_adds_the_costs_of_several_actions_in_several_cases():
    costs = {"bmi": BMI, "bp": ActionCost(2.0, 2.0, usual=90.0)}
    cases = [of(costs, present={"bmi": 30.0}), of(costs)]
    found = CostTable.of(cases, ["bp", "bmi", "free"])
    actions = torch.tensor([[[100.0, 29.0, 7.0], [90.0, 26.0, 7.0]]], dtype=torch.float64)
    assert found(actions).tolist() == [[20.0 + 11.0, 0.0]]
    assert found.origin[:, 2].isnan().all()
    gradient = torch.autograd.functional.jacobian(lambda a: found(a)[0, 0], actions)
    assert gradient[0, 0].tolist() == [2.0, -1.0, 0.0]


def test_a_case_may_have_a_cost_of_its_own():
    costs = {"bmi": ActionCost(column="price", fixed=1.0, usual=26.0)}
    found = of(costs, 100.0, {}, {"bmi": 3.0})
    assert cost_of_setting(found, ["bmi"], [28.0]) == 7.0
    assert found.facts() == {"costs": {"bmi": 3.0}}


def test_costs_count_where_a_worth_is_known():
    case = RehearsalCase("one", {}, {"bmi": (20.0, 35.0)})
    assert not weighing(case.costs)
    assert not weighing(of({"bmi": BMI}))
    assert weighing(of({"bmi": BMI}, 100.0))


def test_costs_in_words():
    assert BMI.words("kg/m2") == "4 per kg/m2 up, 1 down, 10 for any change"
    assert ActionCost(2.0, 2.0).words() == "2 per unit"
    assert ActionCost(column="price").words("kg") == "price per kg, by the case"
    assert ActionCost().words() == "nothing"


DRUG = Coding("drug", ("A", "B", "C"), "B")
CLASSES = {"drug=A": (0.0, 1.0), "drug=C": (0.0, 1.0)}
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
    assert [cost_of_setting(case, ("drug=A", "drug=C"), row) for row in rows] == costs


def test_numbers_have_prices_and_a_present_value_between_them_is_none_of_them():
    prices = LevelPrices.of("dose", {"0": 1.0, 2: 3.0, 0.5: 2.0}, None, {"dose": (0.0, 0.5, 2.0)})
    assert prices.to_plain() == {"0": 1.0, "0.5": 2.0, "2": 3.0}
    cost = ActionCost(levels=prices)
    at = [cost_of_setting(in_case({"dose": cost}, dose=now), ["dose"], [2.0]) for now in (0.5, 2.0, 1.9)]
    assert at == [3.0, 0.0, 3.0]
    assert cost.words("mg") == "1 to 0, 2 to 0.5, 3 to 2"


TASK = {
    "graph": ["x -> a", "{x a b} -> y"],
    "context": ["x"],
    "box": {"a": [0, 1], "b": [0, 1]},
    "region": "y >= 0",
}


def task(**parts):
    return RehearsalTask.of({**TASK, **parts})


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (2, ActionCost(2.0, 2.0)),
        (0, ActionCost()),
        ({"up": 2, "down": 0.5, "fixed": 10}, ActionCost(2.0, 0.5, 10.0)),
        ({"up": 2, "usual": 0.25}, ActionCost(2.0, usual=0.25)),
        ({"column": "price", "fixed": 1}, ActionCost(fixed=1.0, column="price")),
    ],
)
def test_every_form_is_read_and_read_back(written, made):
    found = task(costs={"a": written}, worth=1e3)
    assert found.costs == {"a": made}
    assert found.worth == 1000.0
    again = RehearsalTask.of(found.to_plain())
    assert (again.costs, again.worth) == (found.costs, found.worth)
    assert again.to_plain() == found.to_plain()


OF_CLASSES = {
    "graph": ["{ward a answer} -> y"],
    "context": [],
    "box": {"ward": {"values": ["A", "B"]}, "answer": {"values": ["no", "yes"]}, "a": {"values": [0, 1, 2]}},
    "region": "y >= 0",
    "codings": {"ward": {"classes": ["A", "B", "C"], "reference": "A"}, "answer": ["no", "yes"]},
}


@pytest.mark.parametrize(
    ("costs", "plain"),
    [
        ({"ward": {"A": 0, "B": 12}}, {"levels": {"A": 0.0, "B": 12.0}}),
        (
            {"ward": {"levels": {"A": 0, "B": 12, "C": 3}, "fixed": 5, "usual": "C"}},
            {"fixed": 5.0, "levels": {"A": 0.0, "B": 12.0, "C": 3.0}, "usual": "C"},
        ),
        ({"ward": {"fixed": 5}}, {"fixed": 5.0, "levels": {"A": 0.0, "B": 0.0, "C": 0.0}}),
        ({"answer": {True: 3, False: 0}}, {"levels": {"no": 0.0, "yes": 3.0}}),
        ({"answer": {"up": 3, "usual": "yes"}}, {"up": 3.0, "usual": 1.0}),
        ({"a": {0: 1, 1: 2, 2: 0}}, {"levels": {"0": 1.0, "1": 2.0, "2": 0.0}}),
    ],
)
def test_costs_of_levels_are_read_and_read_back(costs, plain):
    found = RehearsalTask.of(OF_CLASSES | {"costs": costs, "worth": 10})
    assert found.to_plain()["costs"] == {next(iter(costs)): plain}
    again = RehearsalTask.of(found.to_plain())
    assert (again.costs, again.to_plain()) == (found.costs, found.to_plain())
