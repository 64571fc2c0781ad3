"""Answers and reasons as JSON: the status says whose fault it is."""

import json
import math

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.explorer.replies import message, told
from rehearsal_torch.explorer.turns import BusyError


def failing(error):
    def answer():
        raise error

    return answer


def test_what_is_not_finite_becomes_null():
    found = told(lambda: {"a": math.nan, "b": [math.inf, 1.5]})
    assert (found.status_code, json.loads(found.body)) == (200, {"a": None, "b": [None, 1.5]})


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ValueError("a: expected a number"), 422, "a: expected a number"),
        (UserError("is gone", "table.csv", "Fetch it"), 422, "table.csv: is gone. Fetch it."),
        (BusyError("ask again"), 409, "ask again"),
    ],
)
def test_what_cannot_be_answered_has_its_reason(error, status, text):
    found = told(failing(error))
    assert (found.status_code, json.loads(found.body)) == (status, {"message": text})


def test_a_fault_of_the_program_is_none_of_the_question():
    with pytest.raises(KeyError):
        told(failing(KeyError("gone")))
    assert message(404, "nothing").status_code == 404
