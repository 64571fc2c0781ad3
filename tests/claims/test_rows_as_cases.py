"""Rows as cases."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.claims.rows_as_cases import alterations_for, row_cases, weighed
from rehearsal_torch.data.cost_table import cost_of_setting
from rehearsal_torch.data.costs import ActionCost
from tests.claims.test_cross_fitting import TASK, Share, fitted, rows


def test_cases_have_the_contexts_of_their_rows_and_the_actions_of_the_task():
    table = rows(6, seed=3)
    cases = row_cases(table, TASK, torch.tensor([4, 1]))
    assert [each.identity for each in cases] == ["row 4", "row 1"]
    assert [float(each.given["x"]) for each in cases] == table.values[[4, 1], 0].tolist()
    assert all(each.feasible == {"a": (0.0, 9.0)} for each in cases)


def test_rows_are_priced_from_the_usual_values_where_costs_can_be_weighed():
    priced = replace(TASK, costs={"a": ActionCost(up=2.0, fixed=1.0, usual=3.0)}, worth=10.0)
    assert (weighed(priced), weighed(TASK)) == (True, False)
    assert not weighed(replace(priced, worth=None))
    assert not weighed(replace(priced, costs={"a": ActionCost(column="price", usual=3.0)}))
    assert not weighed(replace(priced, costs={"a": ActionCost(usual=3.0)}))
    (one,) = row_cases(rows(6, seed=3), priced, torch.tensor([2]), priced=True)
    assert one.present == {}
    assert cost_of_setting(one.costs, ["a"], [5.0]) == 5.0
    assert row_cases(rows(6, seed=3), priced, torch.tensor([2]))[0].costs is None


def test_an_objective_that_judges_no_given_action_is_refused():
    with pytest.raises(TypeError, match=r"needs an objective that appraises given actions .* got int"):
        alterations_for(lambda model, cases: 3, None, [])


def test_an_objective_that_judges_given_actions_is_the_objective_of_these_cases():
    table = rows(40, seed=3)
    cases = row_cases(table, TASK, torch.tensor([4, 1]))
    made = alterations_for(Share, fitted(table), cases)
    assert made.cases == tuple(cases)
    assert torch.equal(made.sets[0].model.shares, fitted(table).shares)
