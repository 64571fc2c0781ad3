"""Rows as cases."""

import pytest
import torch

from rehearsal_torch.row_cases import alterations_for, in_batches, part_of, row_cases
from tests.test_claims import TASK, rows


def test_cases_have_the_contexts_of_their_rows_and_the_actions_of_the_task():
    table = rows(6, seed=3)
    cases = row_cases(table, TASK, torch.tensor([4, 1]))
    assert [each.identity for each in cases] == ["row 4", "row 1"]
    assert [float(each.given["x"]) for each in cases] == table.values[[4, 1], 0].tolist()
    assert all(each.feasible == {"a": (0.0, 9.0)} for each in cases)


def test_a_part_of_a_table_has_those_rows():
    table = rows(6, seed=3)
    part = part_of(table, torch.tensor([5, 0]))
    assert part.names == table.names
    assert torch.equal(part.values, table.values[[5, 0]])


def test_batches_hold_all_cases_in_order():
    assert [list(each) for each in in_batches(list(range(5)), 2)] == [[0, 1], [2, 3], [4]]


def test_an_objective_that_judges_no_given_action_is_refused():
    with pytest.raises(TypeError, match=r"needs an objective that appraises given actions .* got int"):
        alterations_for(lambda model, cases: 3, None, [])
