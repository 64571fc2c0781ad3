"""Sentences of rehearsal decisions."""

from rehearsal_torch.reporting.labels import Dose, Wording
from rehearsal_torch.reporting.page.html import sentence, sentences
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.page.sentences import (
    chances,
    changes,
    headline,
    overall,
    said_of_episode,
    said_of_trials,
)
from rehearsal_torch.reporting.page.views import case_of
from tests.conftest import decision
from tests.toys import recorded_runs
from tests.toys.recorded_runs import CHANCE, recommended, refused


def context(line, units=None):
    return sentence("given", case_of(line, units or {}))


def truth(line):
    return sentences("truth", case_of(line))


def test_what_is_missing_is_left_out():
    one = recommended() | {"given": {}, "baseline": None}
    assert context(one) == ""
    assert chances(one)[0].startswith("The estimated chance of a desired outcome is 80 % (95%")
    assert chances(one | {"estimate": None}) == ["The method estimates no chance for this."]
    assert chances({"status": "leave", "alteration": None}) == []
    assert truth(one) == []


def test_an_interval_that_counts_what_no_row_shows_says_so():
    said = chances(recommended() | {"trace": {"beyond": 0.12}})
    assert any("the interval counts anything from 0 to 1 there" in each for each in said)
    assert not any("anything" in each for each in chances(recommended() | {"trace": {"beyond": 0.04}}))


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


AGAINST = recommended() | {
    "present": {"rate": 0.5},
    "unchanged": {"point": 0.45, "of": "probability of a desired outcome"},
    "gain": {"point": 0.35, "of": "difference", "lower": 0.1, "upper": 0.5, "level": 0.95},
}


def test_a_change_is_said_from_its_present_value_with_its_unit():
    assert headline(AGAINST, {"rate": "%"}) == "May help: lower rate from 0.5 to 0.3 %."
    assert headline(AGAINST | {"status": "do"}, {"rate": "%"}) == "Lower rate from 0.5 to 0.3 %."
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


OUTSIDE = {"kind": "range", "text": "score is 9; the observations lie between 0 and 1"}


def test_outside_the_data_the_reason_stands_in_place_of_every_number():
    few = {"kind": "support", "text": "few rows are like this"}
    reason = ["Outside the data: score is 9; the observations lie between 0 and 1."]
    for one in (AGAINST | {"cost": 3.0}, recommended(), refused()):
        assert chances(one | {"findings": [few, OUTSIDE]}) == reason
    bounds = {"truth_lower": 0.5, "truth_upper": 0.95, "level": 0.9}
    assert truth(recommended() | {"certificate": bounds, "findings": [few]}) == []


def test_the_mean_is_over_the_cases_within_the_data():
    inside = [recommended(point=0.8, before=0.4)] * 3
    beyond = recommended(point=1.0, before=0.0) | {"findings": [OUTSIDE]}
    assert overall([*inside, beyond, refused(), refused()]) == (
        "In 4 of 6 cases an alteration is recommended; in the 3 of these within the data, the estimated "
        "chance of a desired outcome rises on average from 40 % to 80 %."
    )
    assert overall([beyond] * 6) == (
        "In 6 of 6 cases an alteration is recommended, outside the data in all of them."
    )


WORDS = Wording(
    "SOFA", -1.0, "points", "4 h", (Dose("V", "vasopressor", "mcg/kg/min"), Dose("F", "fluids", "mL/4 h"))
)


def test_models_that_disagree_bookkeeping_and_truth_are_said():
    one = decision(1)
    one["trajectory"] |= {
        "member_gains": [4.0, 7.5],
        "related": {"with doses": {"observed": -60.0, "value": -63.0}},
    }
    one["score"] = {"true_observed": -60.0, "true_value": -58.0}
    _, _, said = said_of_episode(one, WORDS)
    assert said[1].endswith("10.0% better; the 2 fitted models predict gains of 4 to 7.5.")
    one["trajectory"]["member_gains"] = [4.0, 4.0]
    assert said_of_episode(one, WORDS)[2][1].endswith("; the 2 fitted models predict a gain of 4.")
    assert said[2].startswith("With the points that a dose scores because it is given: 60 and 63;")
    assert said[3] == "The truth, which this simulation knows: SOFA 60 as observed, 58 after this decision."


def test_a_refusal_says_why_and_what_was_withdrawn():
    one = decision(0) | {
        "status": "leave",
        "alteration": None,
        "reason": {"kind": "invalid", "text": "the models disagree"},
        "doses": {"action[1]": [0.04, 10.0]},
        "findings": [{"kind": "range", "text": "far"}],
    }
    one["trace"]["would_set"] = {"action[1]": 3}
    _, headline, said = said_of_episode(one, WORDS)
    assert headline.startswith("Refused")
    assert said == [
        "Cumulative SOFA (points) as observed: 50.",
        "Why: the models disagree.",
        "Withdrawn: Step 2: vasopressor stays at 0.04 mcg/kg/min, fluids from 279 to 10 mL/4 h.",
        "Warning: far.",
    ]
    assert (
        said_of_episode(one | {"reason": {"kind": "no_gain", "text": "none"}}, WORDS)[1]
        == "No change is recommended."
    )


def test_without_doses_the_number_of_the_action_is_named():
    one = decision(0)
    one["trajectory"] |= {"doses": [], "observed_doses": []}
    assert said_of_episode(one, Wording())[2][0] == "Step 2: action 12."
    assert said_of_episode(one | {"alteration": {"price": 2}}, Wording())[2][0] == "price."


def test_where_all_settings_wait_the_one_to_keep_is_said_with_the_reason(tmp_path):
    found = material(recorded_runs.trials(tmp_path, own=True))
    found.run.decisions[-1] |= {
        "alteration": None,
        "reason": {"kind": "nothing_left", "text": "all of them wait"},
    }
    title, headline, said = said_of_trials(found)
    assert title == "Next experiment"
    assert headline == "There is nothing to try before further results are known."
    assert said[0] == "To keep, if you had to stop now: a at 0.25."
    assert said[-1] == "Why: all of them wait."


def test_a_refusal_keeps_nothing(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    found.run.decisions[-1] |= {"alteration": None, "recommendation": None, "estimate": None}
    found.run.decisions[-1] |= {"reason": {"kind": "no_support", "text": "too few"}}
    _, headline, said = said_of_trials(found)
    assert headline == "Nothing is recommended."
    assert "Why: too few." in said
