"""Decisions: three answers, typed, plain, and never anything that is no number."""

import json
import math

import pytest
import torch

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.decision import Decision, EpisodeCase, Estimate, RehearsalCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.spaces.box import Alteration

CHANGE = Alteration(("action[2]", "action[5]"), torch.tensor([3, 7]))


def test_a_decision_is_plain_data_without_its_seconds():
    made = Decision(
        CHANGE,
        -1.5,
        estimate=Estimate(-1.5, "return"),
        baseline=Estimate(-2.0, "return", -2.5, -1.0, 0.95),
        doses={"action[2]": (0.1, 500.0)},
        findings=(Finding("note", "far away"),),
        reason=Finding("note", "why"),
        trace={"gap": 0.0},
        seconds=3.0,
    )
    assert json.loads(json.dumps(made.to_dict())) == {
        "status": "may",
        "alteration": {"action[2]": 3, "action[5]": 7},
        "value": -1.5,
        "estimate": {"point": -1.5, "of": "return"},
        "baseline": {"point": -2.0, "of": "return", "lower": -2.5, "upper": -1.0, "level": 0.95},
        "doses": {"action[2]": [0.1, 500.0]},
        "findings": [{"kind": "note", "text": "far away"}],
        "reason": {"kind": "note", "text": "why"},
        "trace": {"gap": 0.0},
    }
    assert made.improvement == 0.25
    assert made.actions() == {2: 3, 5: 7}


def test_refusing_and_doing_nothing_are_answers():
    refused = Decision(None, 0.0, reason=Finding("invalid", "no path"))
    assert refused.to_dict() == {
        "status": "leave",
        "alteration": None,
        "value": 0.0,
        "estimate": None,
        "baseline": None,
        "findings": [],
        "reason": {"kind": "invalid", "text": "no path"},
        "trace": {},
    }
    assert math.isnan(refused.improvement)
    assert refused.actions() == {}
    assert refused.undecided
    assert not Decision(None, 0.0).undecided
    assert Decision(None, 0.0).status == "leave"


def test_what_surely_gains_is_to_be_done_and_the_rest_may_be():
    sure = Estimate(0.2, "difference", 0.1, 0.3, 0.95)
    assert Decision(CHANGE, 0.0).status == "may"
    assert Decision(CHANGE, 0.0, gain=sure).status == "do"
    assert Decision(CHANGE, 0.0, gain=Estimate(0.2, "difference")).status == "may"
    assert Decision(CHANGE, 0.0, gain=Estimate(0.2, "difference", 0.0, 0.3, 0.95)).status == "may"
    # Where a worth is known, the net gain counts: 10 * .1 - cost.
    assert Decision(CHANGE, 0.0, gain=sure, worth=10.0, cost=0.9).status == "do"
    assert Decision(CHANGE, 0.0, gain=sure, worth=10.0, cost=1.1).status == "may"


def test_facts_are_plain_and_say_what_was_known():
    ahead = RehearsalCase(
        "7", {"age": torch.tensor(60.0), "doses": torch.tensor([1.0, 2.0])}, {"dose": (0.0, 1.0)}
    )
    assert ahead.facts() == {"identity": "7", "given": {"age": 60.0, "doses": [1.0, 2.0]}}
    assert json.loads(json.dumps(ahead.facts())) == ahead.facts()
    assert EpisodeCase(Episode("42", ("a",), torch.zeros(2, 1))).facts() == {"identity": "42"}


def test_classes_are_set_one_at_a_time_and_told_by_their_names():
    drug = Coding("drug", ("A", "B", "C"), "A")
    feasible = {"drug=B": (0.0, 1.0), "drug=C": (0.0, 1.0), "dose": (0.0, 2.0)}
    levels = {"drug=B": (0.0, 1.0), "drug=C": (0.0, 1.0)}
    case = RehearsalCase("Ann", {}, feasible, levels=levels, codings=(drug,))
    for row in (*drug.rows.tolist(), drug.rows.tolist()):
        case.check(Alteration(("drug=B", "drug=C"), torch.tensor(row, dtype=torch.float64)))
    with pytest.raises(ValueError, match="Ann: drug may be set to one of A, B, C; got several at once"):
        case.check(Alteration(("drug=B", "dose", "drug=C"), torch.tensor([1.0, 0.5, 1.0])))
    assert case.in_texts({"dose": 1.23456, "drug=B": 0.0, "drug=C": 1.0}) == {"dose": "1.235", "drug": "C"}
