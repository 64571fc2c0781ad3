"""Trials: what goes together, and what is a number."""

import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.data.trials.trial import Recommended, Suggestion, Trial, finite, named_numbers


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "pending", "ran": {"a": 1.0}, "nodes": {"Y": 1.0}},
        {"state": "completed", "asked": {"a": 1.0}},
        {"state": "stopped", "asked": {"a": 1.0}},
        {"state": "failed", "asked": {"a": 1.0}, "reason": "\ud800"},
    ],
)
def test_a_trial_that_cannot_be_is_refused(fields):
    with pytest.raises(ValueError, match="Trial"):
        Trial(**{"id": 1, **fields})


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


@pytest.mark.parametrize("part", ["asked", "ran", "nodes"])
def test_what_a_trial_maps_is_read_only(part):
    given = {"a": 1.0}
    trial = Trial(id=3, state="failed", asked=given, ran=given, nodes=given)
    with pytest.raises(TypeError, match="does not support item assignment"):
        getattr(trial, part)["a"] = 99.0
    given["a"] = 99.0
    assert getattr(trial, part) == json.loads(trial.line)[part] == {"a": 1.0}


def test_copies_of_a_trial_have_lines_of_their_own():
    trial = Trial(id=3, state="pending", asked={"a": 1.0})
    assert json.loads(trial.line)["id"] == 3
    other = trial.model_copy(update={"id": 7, "asked": {"a": 2.0}})
    assert json.loads(other.line) == other.to_plain() == {"id": 7, "state": "pending", "asked": {"a": 2.0}}
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        trial.model_copy(update={"id": 0})
    copies = copy.copy(trial), copy.deepcopy(trial), trial.model_copy(deep=True)
    assert all(each == trial for each in (*copies, pickle.loads(pickle.dumps(trial))))
    assert trial.model_dump()["asked"] == {"a": 1.0}


def test_a_suggestion_knows_its_trial():
    made = Suggestion(Trial(id=3, state="pending", asked={"a": 1.0}))
    made["a"] = 2.0
    assert (made, made.trial, made.asked) == ({"a": 2.0}, 3, {"a": 1.0})


@pytest.mark.parametrize(
    "value",
    [2, 2.0, np.float32(2), np.int8(2), np.array([2.0]), torch.tensor([[2.0]]), Decimal(2), Fraction(4, 2)],
)
def test_numbers_are_numbers(value):
    assert finite(value) == 2.0


TRUTHS = True, np.bool_(True), torch.tensor(True)
OTHERS = "2", None, pd.NA, pd.NaT, float("inf"), np.nan, 10**400, Decimal("NaN"), 2j, [2.0], {}


@pytest.mark.parametrize("value", [*TRUTHS, *OTHERS, np.ones(2), torch.ones(2)])
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


ALONE = Recommended({"a": 0.5, "b": 1.0}, 2.0, 0.25)
RUNNER_UP = {"runner_up": {"a": 0.75}, "runner_up_predicted": 1.5}
BESIDE = Recommended({"a": 0.5}, 2.0, 0.25, **RUNNER_UP, chance=0.875, tried=True)


def test_it_is_a_pair_of_action_and_expected_reward():
    action, expected = ALONE
    assert (action, expected) == ({"a": 0.5, "b": 1.0}, 2.0) == (ALONE.action, ALONE.predicted)
    assert ALONE[0] is ALONE.action
    assert ALONE == ({"a": 0.5, "b": 1.0}, 2.0)


def test_copies_have_all_of_it():
    for made in (copy.copy(BESIDE), copy.deepcopy(BESIDE)):
        assert made == BESIDE
        assert (made.std, made.runner_up, made.runner_up_predicted) == (0.25, {"a": 0.75}, 1.5)
        assert (made.chance, made.tried) == (0.875, True)


def test_a_sentence_says_how_sure_it_is():
    # Not that nothing else was tried: other settings may have been.
    assert str(ALONE) == "a = 0.5, b = 1: expected reward 2 (1.51 to 2.49)"
    assert str(BESIDE) == (
        "a = 0.5 (tried): expected reward 2 (1.51 to 2.49); the best other tried action is a = 0.75 "
        "(expected 1.5); the recommended one is better with a probability of 88%"
    )
    assert str(Recommended({"rpm": 15300.0}, 20000.0, 0.0)).startswith("rpm = 15300: expected reward 20000 ")


@pytest.mark.parametrize(("chance", "said"), [(0.9999, "more than 99%"), (1e-6, "less than 1%")])
def test_few_networks_make_nothing_certain(chance, said):
    made = Recommended({"a": 0.5}, 2.0, 0.25, **RUNNER_UP, chance=chance)
    assert str(made).endswith(f"; the recommended one is better with a probability of {said}")
