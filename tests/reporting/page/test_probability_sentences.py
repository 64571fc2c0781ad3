"""Sentences of rehearsal decisions."""

import pytest

from rehearsal_torch.reporting.page.probability_sentences import (
    chances,
    changes,
    context,
    headline,
    overall,
    settings,
    truth,
)
from tests.toys.recorded_runs import CHANCE, recommended, refused


def test_a_recommendation_says_what_to_set_and_the_chance_before_and_after():
    one = recommended()
    assert headline(one) == "Set rate to 0.3."
    assert context(one) == "Known before deciding: score 0.25."
    assert chances(one) == [
        "The estimated chance of a desired outcome rises from 60 % with no action to 80 % (95% interval 70 % "
        "to 90 %)."
    ]


def test_a_gain_over_no_action_is_told_where_it_is_known():
    gain = {"point": 0.2, "lower": -0.05, "upper": 0.45, "level": 0.95}
    (said,) = chances(recommended() | {"gain": gain})
    assert said.endswith(
        "to 80 % (95% interval 70 % to 90 %): a difference of 20 percentage points (-5 to 45), not told from "
        "zero."
    )


@pytest.mark.parametrize(
    ("before", "way"),
    [
        (0.6, "rises from 60 % with no action to 80 %"),
        (0.8, "hardly changes, from 80 % with no action to 80 %"),
        (0.797, "rises from 79.7 % with no action to 80.0 %"),
        (0.9, "falls from 90 % with no action to 80 %"),
    ],
)
def test_a_chance_that_falls_is_not_said_to_rise(before, way):
    (sentence,) = chances(recommended(before=before))
    assert f"outcome {way}" in sentence


def test_a_refusal_says_what_was_withdrawn_and_never_what_to_set():
    one = refused()
    assert headline(one) == "Refused: the method cannot answer, and recommends nothing."
    assert chances(one) == [
        "With no action, the estimated chance of a desired outcome is 50 %.",
        "The alteration that was withdrawn would have set rate to 5, estimated at 20 % (90% interval 0 % to "
        "70 %).",
    ]
    assert headline(one | {"status": "no_action"}) == "No action is recommended."


def test_what_is_missing_is_left_out():
    one = recommended() | {"given": {}, "baseline": None}
    assert context(one) == ""
    assert chances(one)[0].startswith("The estimated chance of a desired outcome is 80 % (95%")
    assert chances(one | {"estimate": None}) == ["The method estimates no chance for this."]
    assert chances({"status": "no_action", "alteration": None}) == []
    assert truth(one) == []


def test_the_bound_of_a_certificate_is_called_what_it_covers():
    one = recommended() | {
        "estimate": {"point": 0.8, "of": "probability of x"},
        "certificate": {"lower": 0.75, "upper": 0.85, "truth_lower": 0.5, "truth_upper": 0.95, "level": 0.9},
    }
    (said,) = chances(one)
    assert said.endswith("to 80 % (error of counting under the model 75 % to 85 %).")
    assert truth(one) == [
        "If the model is right, with a probability of 90%, the true chance lies between 50 % and 95 %."
    ]
    del one["certificate"]["level"]
    assert truth(one) == ["If the model is right, the true chance lies between 50 % and 95 %."]
    (said,) = chances(one | {"certificate": {}})
    assert said.endswith("to 80 %.")


def test_an_objective_of_something_else_is_told_in_its_own_numbers():
    of = {"of": "revenue"}
    one = recommended() | {"estimate": {"point": 1234.5, **of}, "baseline": {"point": 1000.0, **of}}
    gain = {"point": 234.5, "lower": 100.0, "upper": 300.0, "level": 0.9}
    assert chances(one | {"gain": gain}, "y is at most 1") == [
        "The estimated revenue rises from 1000 with no action to 1234: a difference of 234.5 (90% interval "
        "100 to 300)."
    ]


def test_the_truth_of_a_world_is_called_so():
    score = {"probability": 0.7, "no_action": 0.5, "oracle": 0.9}
    assert truth(recommended() | {"score": score}) == [
        "The truth, which this simulated world knows: the chance is 70 % after this, 50 % with no action and "
        "90 % at best."
    ]
    assert "the chance is 50 % with no action" in truth(refused() | {"score": score})[0]


def test_settings_in_words():
    assert settings({"a": 1.0}) == "a to 1"
    assert settings({"a": 1.0, "b": 0.25, "c": 3}, "at") == "a at 1, b at 0.25 and c at 3"
    assert settings({"a": 1.0, "b": "low"}, "to", {"a": "%", "b": ""}) == "a to 1 % and b to low"


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
        "The estimated chance of a desired outcome rises from 45 % with rate left at 0.5 to 80 % (95% "
        "interval 70 % to 90 %): a difference of 35 percentage points (10 to 50).",
        "With what is usual in such a case, it is 60 %.",
    ]
    unclear = AGAINST | {"gain": AGAINST["gain"] | {"lower": -0.1}}
    assert chances(unclear)[0].endswith("35 percentage points (-10 to 50), not told from zero.")
    withdrawn = refused() | {
        "present": {"rate": 2.0},
        "unchanged": {"point": 0.45, "of": "probability of a desired outcome"},
    }
    assert chances(withdrawn)[:2] == [
        "With rate left at 2, the estimated chance of a desired outcome is 45 %.",
        "With what is usual in such a case, it is 50 %.",
    ]


def test_the_difference_is_that_of_the_numbers_beside_it():
    def line(before, after, gain):
        parts = {"unchanged": before, "estimate": after, "gain": gain}
        ends = {
            name: dict(zip(("point", "lower", "upper"), each, strict=True)) for name, each in parts.items()
        }
        return AGAINST | {name: {"of": CHANCE, "level": 0.95, **each} for name, each in ends.items()}

    near = line((0.086, 0.0863, 0.12), (0.092, 0.07, 0.125), (0.006, -0.02, 0.03))
    assert "from 8.6 % (95% interval 8.6 % to 12.0 %)" in chances(near)[0]
    assert chances(near)[0].endswith(
        "to 9.2 % (7.0 % to 12.5 %): a difference of 0.6 percentage points (-2.0 to 3.0), not told from zero."
    )
    rounded = line((0.8643, 0.8, 0.9), (0.8757, 0.82, 0.92), (0.0114, 0.005, 0.02))
    assert "from 86.43 % (95%" in chances(rounded)[0], "87.6 - 86.4 is not 1.1"
    assert "to 87.57 % (82.00 % to 92.00 %): a difference of 1.14 " in chances(rounded)[0]


OUTSIDE = "range: score is 9; the observations lie between 0 and 1"


def test_outside_the_data_the_reason_stands_in_place_of_every_number():
    few = "support: few rows are like this"
    reason = ["Outside the data: score is 9; the observations lie between 0 and 1."]
    for one in (AGAINST | {"cost": 3.0}, recommended(), refused()):
        assert chances(one | {"warnings": [few, OUTSIDE]}) == reason
    bounds = {"truth_lower": 0.5, "truth_upper": 0.95, "level": 0.9}
    assert truth(recommended() | {"certificate": bounds, "warnings": [few]}) == []


def test_the_mean_is_over_the_cases_within_the_data():
    inside = [recommended(point=0.8, before=0.4)] * 3
    beyond = recommended(point=1.0, before=0.0) | {"warnings": [OUTSIDE]}
    assert overall([*inside, beyond, refused(), refused()]) == (
        "In 4 of 6 cases an alteration is recommended; in the 3 of these within the data, the estimated "
        "chance of a desired outcome rises on average from 40 % to 80 %."
    )
    assert overall([beyond] * 6) == (
        "In 6 of 6 cases an alteration is recommended, outside the data in all of them."
    )


def test_both_numbers_have_their_intervals_and_the_level_is_said_once():
    unchanged = {"point": 0.45, "of": CHANCE, "lower": 0.3, "upper": 0.55, "level": 0.95}
    gain = AGAINST["gain"] | {"level": 0.9}
    assert chances(AGAINST | {"unchanged": unchanged, "gain": gain}, "repaid is yes")[0] == (
        "The estimated chance that repaid is yes rises from 45 % (95% interval 30 % to 55 %) with rate left "
        "at 0.5 to 80 % (70 % to 90 %): a difference of 35 percentage points (90% interval 10 to 50)."
    )
    idle = refused() | {"baseline": unchanged}
    assert chances(idle, "repaid is yes")[0] == (
        "With no action, the estimated chance that repaid is yes is 45 % (95% interval 30 % to 55 %)."
    )


def test_many_cases_are_summed_up_in_one_sentence():
    lines = [*(recommended(point=0.8, before=before) for before in (0.2, 0.3, 0.4, 0.5)), refused()]
    assert overall(lines) == ""
    assert overall([*lines, refused()], "repaid is yes") == (
        "In 4 of 6 cases an alteration is recommended; in these, the estimated chance that repaid is yes "
        "rises on average from 35 % to 80 %."
    )
    assert overall([refused()] * 6) == "In 0 of 6 cases an alteration is recommended."
    unknown = recommended() | {"baseline": None}
    assert overall([*lines, unknown]) == "In 5 of 6 cases an alteration is recommended."
    better = AGAINST | {"unchanged": {"point": 0.1, "of": CHANCE}}
    assert overall([better] * 6).endswith(
        "in these, the estimated chance of a desired outcome rises on average from 10 % to 80 %."
    )
