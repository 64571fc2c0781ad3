"""Sentences of rehearsal decisions."""

import pytest

from rehearsal_torch.reporting.page.probability_sentences import (
    chances,
    changes,
    context,
    headline,
    interval,
    settings,
    truth,
)
from tests.toys.recorded_runs import recommended, refused


def test_a_recommendation_says_what_to_set_and_the_chance_before_and_after():
    one = recommended()
    assert headline(one) == "Set rate to 0.3."
    assert context(one) == "Known before deciding: score 0.25."
    assert chances(one) == [
        "The estimated probability of a desired outcome rises from 0.600 with no action to 0.800 (95% "
        "interval 0.700 to 0.900)."
    ]


def test_a_gain_over_no_action_is_told_where_it_is_known():
    gain = {"point": 0.2, "lower": -0.05, "upper": 0.45, "level": 0.95}
    assert chances(recommended() | {"gain": gain})[1:] == [
        "The difference is +0.200 (95% interval -0.050 to +0.450), so that it is not told from zero."
    ]


@pytest.mark.parametrize(("before", "way"), [(0.6, "rises"), (0.8, "stays"), (0.9, "falls")])
def test_a_chance_that_falls_is_not_said_to_rise(before, way):
    (sentence,) = chances(recommended(before=before))
    assert f"outcome {way} from {before:.3f}" in sentence


def test_a_refusal_says_what_was_withdrawn_and_never_what_to_set():
    one = refused()
    assert headline(one) == "Refused: the method cannot answer, and recommends nothing."
    assert chances(one) == [
        "With no action, the estimated probability of a desired outcome is 0.500.",
        "The alteration that was withdrawn would have set rate to 5, estimated at 0.200 (90% interval 0.000 "
        "to 0.700).",
    ]
    assert headline(one | {"status": "no_action"}) == "No action is recommended."


def test_what_is_missing_is_left_out():
    one = recommended() | {"given": {}, "baseline": None}
    assert context(one) == ""
    assert chances(one)[0].startswith("The estimated probability of a desired outcome is 0.800 (95%")
    assert chances(one | {"estimate": None}) == ["The method estimates no chance for this."]
    assert chances({"status": "no_action", "alteration": None}) == []
    assert truth(one) == []


def test_an_interval_of_a_certificate_is_called_one():
    one = recommended() | {
        "estimate": {"point": 0.8, "of": "x"},
        "certificate": {"lower": 0.75, "upper": 0.85, "truth_lower": 0.5, "truth_upper": 0.95, "level": 0.9},
    }
    assert interval(one) == " (certified interval 0.750 to 0.850)"
    assert truth(one) == [
        "If the model is right, with a probability of 90%, the true probability lies between 0.500 and 0.950."
    ]
    del one["certificate"]["level"]
    assert truth(one) == ["If the model is right, the true probability lies between 0.500 and 0.950."]
    assert interval(one | {"certificate": {}}) == ""


def test_the_truth_of_a_world_is_called_so():
    score = {"probability": 0.7, "no_action": 0.5, "oracle": 0.9}
    assert truth(recommended() | {"score": score}) == [
        "The truth, which this simulated world knows: the probability is 0.700 after this, 0.500 with no "
        "action and 0.900 at best."
    ]
    assert "the probability is 0.500 with no action" in truth(refused() | {"score": score})[0]


def test_settings_in_words():
    assert settings({"a": 1.0}) == "a to 1"
    assert settings({"a": 1.0, "b": 0.25, "c": 3}, "at") == "a at 1, b at 0.25 and c at 3"


AGAINST = recommended() | {
    "present": {"rate": 0.5},
    "unchanged": {"point": 0.45, "of": "probability of a desired outcome"},
    "gain": {"point": 0.35, "of": "difference", "lower": 0.1, "upper": 0.5, "level": 0.95},
}


def test_a_change_is_said_from_its_present_value_with_its_unit():
    assert headline(AGAINST, {"rate": "%"}) == "Lower rate from 0.5 to 0.3 %."
    assert context(AGAINST, {"score": "points"}) == "Known before deciding: score 0.25 points."
    assert changes({"a": 2.0, "b": 1.0, "c": 3.0}, {"a": 1.0, "b": 1.0}, {}) == (
        "raise a from 1 to 2, leave b at 1 and set c to 3"
    )
    assert changes({"a": 2.0, "b": 1.0}, {}, {"b": "kg"}) == "set a to 2 and b to 1 kg"


def test_chances_are_those_of_the_present_values_and_what_is_usual_stands_beside_them():
    assert chances(AGAINST) == [
        "The estimated probability of a desired outcome rises from 0.450 with rate left at 0.5 to 0.800 "
        "(95% interval 0.700 to 0.900).",
        "The difference is +0.350 (95% interval +0.100 to +0.500).",
        "With what is usual in such a case, it is 0.600.",
    ]
    unclear = AGAINST | {"gain": AGAINST["gain"] | {"lower": -0.1}}
    assert chances(unclear)[1] == (
        "The difference is +0.350 (95% interval -0.100 to +0.500), so that it is not told from zero."
    )
    withdrawn = refused() | {
        "present": {"rate": 2.0},
        "unchanged": {"point": 0.45, "of": "probability of a desired outcome"},
    }
    assert chances(withdrawn)[0] == (
        "With rate left at 2, the estimated probability of a desired outcome is 0.450. With what is usual in "
        "such a case, it is 0.500."
    )
