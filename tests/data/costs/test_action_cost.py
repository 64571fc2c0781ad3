"""Costs of changes: up, down, at all; from the present value or from the usual one."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.costs.action_cost import ActionCost, CaseCosts, CostTable, weighing
from rehearsal_torch.data.decision import RehearsalCase

BMI = ActionCost(4.0, 1.0, 10.0, usual=26.0)


def of(actions, worth=None, present=None, per_unit=None):
    return CaseCosts.of(actions, worth, present or {}, per_unit or {})


@pytest.mark.parametrize(("value", "cost"), [(30, 0), (32, 18), (27, 13), (30 + 1e-13, 0)])
def test_a_change_costs_by_direction_and_at_all(value, cost):
    assert of({"bmi": BMI}, present={"bmi": 30.0}).of_setting(["bmi"], [value]) == pytest.approx(cost)


def test_where_no_present_value_is_known_changes_count_from_the_usual_one():
    assert of({"bmi": BMI}).of_setting(["bmi"], [28.0]) == 18.0
    with pytest.raises(ValueError, match="no present value of bmi in this case, and no usual one"):
        of({"bmi": replace(BMI, usual=None)})


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
    assert found.of_setting(["bmi"], [28.0]) == 7.0
    assert found.facts() == {"costs": {"bmi": 3.0}}
    with pytest.raises(ValueError, match="no cost of bmi in this case: give its column 'price'"):
        of(costs)


def test_a_case_in_which_everything_is_free_has_no_costs():
    assert of({}) is None
    assert of({"bmi": ActionCost(column="price", usual=0.0)}, 5.0, {}, {"bmi": 0.0}) is None
    assert of({"bmi": ActionCost(usual=0.0)}, 5.0) is None


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
