"""Trials: what goes together, and what is a number."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.data.trials.trial import Suggestion, Trial, finite, named_numbers


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "pending"},
        {"state": "pending", "ran": {"a": 1.0}},
        {"state": "pending", "asked": {"a": 1.0}, "nodes": {"Y": 1.0}},
        {"state": "completed", "asked": {"a": 1.0}},
        {"state": "running", "asked": {"a": 1.0}},
        {"state": "pending", "asked": {"a": float("nan")}},
        {"state": "pending", "asked": {"a": True}},
        {"state": "pending", "asked": {"a": "1"}},
        {"state": "pending", "asked": {"a": 1.0}, "colour": "red"},
    ],
)
def test_a_trial_that_cannot_be_is_refused(fields):
    with pytest.raises(ValueError, match="Trial"):
        Trial(id=1, **fields)


def test_a_trial_becomes_another_and_stays_as_it_was():
    asked = Trial(id=3, state="pending", asked={"a": 1.0})
    done = asked.with_changes(state="completed", ran={"a": 1.5}, nodes={"Y": 2.0})
    assert (asked.state, done.state, done.asked, done.settings) == (
        "pending",
        "completed",
        {"a": 1.0},
        {"a": 1.5},
    )
    assert asked.to_plain() == {"id": 3, "state": "pending", "asked": {"a": 1.0}}
    assert Trial(**done.to_plain()) == done
    with pytest.raises(ValueError, match="frozen"):
        asked.state = "failed"


def test_a_suggestion_knows_its_trial():
    made = Suggestion(Trial(id=3, state="pending", asked={"a": 1.0}))
    made["a"] = 2.0
    assert (made, made.trial, made.asked) == ({"a": 2.0}, 3, {"a": 1.0})


@pytest.mark.parametrize(
    "value",
    [
        2,
        2.0,
        np.float32(2),
        np.int8(2),
        np.array([2.0]),
        torch.tensor(2),
        torch.tensor([[2.0]]),
        Decimal(2),
        Fraction(4, 2),
    ],
)
def test_numbers_are_numbers(value):
    assert finite(value) == 2.0


@pytest.mark.parametrize(
    "value",
    [
        "2",
        True,
        np.bool_(True),
        torch.tensor(True),
        None,
        pd.NA,
        pd.NaT,
        float("inf"),
        np.nan,
        2j,
        [2.0],
        np.ones(2),
        torch.ones(2),
        10**400,
        Decimal("NaN"),
        {},
    ],
)
def test_what_is_no_finite_number_is_none(value):
    assert finite(value) is None


def test_all_faults_of_names_and_numbers_are_told_at_once():
    faults = []
    assert named_numbers({"Temp": 1, "dose": "hot", "b": 2}, ["temp", "dose", "b"], "action", faults) == {
        "b": 2.0
    }
    assert faults == [
        "temp: no value for this action; did you mean 'Temp'?",
        "dose: expected a finite number; got 'hot'",
        "Temp: the task has no such action; did you mean 'temp'?",
    ]
