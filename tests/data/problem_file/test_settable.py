"""Kinds of columns, and the values that actions may be set to."""

import pandas as pd
import pytest

from rehearsal_torch.data.problem_file.cases_schema import VariableForm, of_role
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.variable_kinds import costs, settable

COLUMN = pd.Series([0.0, 1.0, 1.0, 2.5, 4.0])


def form(**settings):
    return VariableForm(**{"role": "action", **settings})


@pytest.mark.parametrize(
    ("settings", "expected", "warned"),
    [
        ({"range": [0, 3]}, [0.0, 3.0], ""),
        ({"levels": [1, 4]}, {"values": [1.0, 4.0]}, ""),
        ({"kind": "integer", "range": [-0.5, 4]}, {"values": [0.0, 1.0, 4.0]}, "2 of the 5 values"),
        ({"range": [0, 4], "step": 2.5}, {"values": [0.0, 2.5]}, ""),
        ({"range": [1, 4], "step": 1.5}, {"values": [1.0, 2.5, 4.0]}, ""),
        ({"kind": "binary"}, {"values": [0.0, 1.0, 2.5, 4.0]}, ""),
    ],
)
def test_what_an_action_may_be_set_to(settings, expected, warned):
    found = Findings("p")
    assert settable("a", form(**settings), COLUMN, found) == {"a": expected}
    assert found.faults == []
    assert (warned in found.warnings[0]) if warned else not found.warnings


def test_roles_and_costs():
    variables = {"a": form(cost=2.0), "b": form(), "c": VariableForm(role="context")}
    assert of_role(variables, "action") == ["a", "b"]
    assert costs(variables) == {"a": 2.0}
    assert costs({"a": form(cost={"up": 3, "down": 1})}) == {}, "a weight of a square is one number"
