"""What the page shows of a claim: numbers, or the reason for which they are withheld."""

from dataclasses import replace

import torch

from rehearsal_torch.data.decision import CHANCE, Decision, Estimate
from rehearsal_torch.data.sensitivity import Sensitivity
from rehearsal_torch.explorer.answers import answer, decision_answer
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.verbs.what_if import WhatIf, outside

CLAIM = Estimate(0.6, CHANCE, 0.5, 0.7, 0.95)
BEFORE = Estimate(0.4, CHANCE)
FAR = "support: the 5th nearest observation is 3.00 standard deviations away"
BEYOND = "range: age is 200; the observations lie between 19 and 79"
GAIN = "gain: not told apart from no action"


def claim(**more):
    return WhatIf({"bmi": 27.0}, CLAIM, BEFORE, 20.0, 0.761, **more)


def test_a_claim_within_the_data_has_its_numbers_and_its_sentence():
    found = answer(claim(warnings=(GAIN,)), [], {})
    assert found["estimate"] == {"point": 0.6, "of": CHANCE, "lower": 0.5, "upper": 0.7, "level": 0.95}
    assert found["baseline"] == {"point": 0.4, "of": CHANCE}
    assert found["sentence"] == (
        "With bmi at 27, the estimated chance of a desired outcome is 60 % (95% interval 50 % to 70 %), "
        "against 40 % with no action."
    )
    assert found["told"] == {
        "point": "60 %",
        "interval": "95% interval 50 % to 70 %",
        "baseline": "40 %",
        "unchanged": "",
    }
    assert (found["withheld"], found["warnings"], found["near"]) == ("", [GAIN], 0.76)


def test_outside_the_data_a_sentence_replaces_the_number():
    found = answer(claim(warnings=(FAR, BEYOND, GAIN, "graph: doubtful")), ["range: age is 200"], {})
    assert found["sentence"] == ("outside the data: age is 200; the observations lie between 19 and 79")
    assert found["withheld"] == found["sentence"]
    assert found["estimate"] is found["baseline"] is found["near"] is None
    # What else says so stands below; what rests on the number does not.
    assert found["warnings"] == [FAR.removeprefix("support: "), "graph: doubtful"]
    assert "0.6" not in str(found)
    assert "0.4" not in str(found)
    assert "60 %" not in str(found)
    assert "40 %" not in str(found)


def test_no_action_keeps_its_number_where_only_the_action_is_outside():
    found = answer(claim(warnings=(FAR,)), [], {})
    assert found["estimate"] is None
    assert found["baseline"]["point"] == 0.4


def test_a_refusal_has_its_reason_and_no_number():
    found = answer(claim(refused="no support", against="no support", warnings=(FAR,)), [], {})
    assert found["sentence"] == "refused: no support"
    assert found["estimate"] is None
    assert found["also"].startswith("outside the data: the 5th nearest")
    assert found["against"] == ""


def test_what_speaks_against_a_setting_is_said_beside_its_number():
    worse = "predicted worse than doing nothing"
    found = answer(claim(against=worse, warnings=("predicted no better than doing nothing (0.6)",)), [], {})
    assert found["against"] == f"The method would not set this: {worse}"
    assert found["warnings"] == []
    assert found["estimate"]["point"] == 0.6


def test_the_range_comes_before_the_support():
    assert outside([FAR, BEYOND])[0].startswith("outside the data: age is 200")
    assert outside([FAR, BEYOND])[1] == [FAR.removeprefix("support: ")]
    assert outside([GAIN]) == ("", [])


def test_a_decision_is_told_in_the_sentences_of_a_report():
    made = Decision(
        Alteration(("bmi",), torch.tensor([27.0])), 0.6, estimate=CLAIM, baseline=BEFORE, warnings=(GAIN,),
        sensitivity=Sensitivity(1.5, "interval", 1.9, "age"),
    )  # fmt: skip
    found = decision_answer(made, {}, wanted="y is at most 1")
    assert found["headline"] == "Set bmi to 27."
    assert found["said"][0] == (
        "The estimated chance that y is at most 1 rises from 40 % with no action to 60 % (95% interval 50 % "
        "to 70 %)."
    )
    assert found["said"][1].startswith("A hidden common cause would have to make this action 1.50 times")
    assert (found["setting"], found["warnings"], found["outside"]) == ({"bmi": 27.0}, [GAIN], False)
    assert decision_answer(made, {}, units={"bmi": "kg/m2"})["headline"] == "Set bmi to 27 kg/m2."


def test_a_decision_outside_the_data_has_no_number_either():
    made = Decision(
        Alteration(("bmi",), torch.tensor([27.0])), 0.6, estimate=CLAIM, baseline=BEFORE, warnings=(FAR,),
        sensitivity=Sensitivity(1.5, "interval", 1.9, "age"),
    )  # fmt: skip
    found = decision_answer(made, {})
    assert found["said"] == [
        "Outside the data: the 5th nearest observation is 3.00 standard deviations away."
    ]
    assert found["outside"] is True


def test_a_refused_decision_says_why():
    found = decision_answer(Decision(None, 0.0, status="refused", reason="no path", baseline=BEFORE), {})
    assert found["headline"] == "Refused: the method cannot answer, and recommends nothing."
    assert found["said"][-1] == "Why: no path."
    assert found["setting"] is None


def test_present_values_are_named_beside_what_is_usual():
    found = replace(claim(), unchanged=Estimate(0.2, CHANCE, 0.1, 0.3, 0.95))
    (name,) = found.alteration
    said = answer(found, [], {name: 30.0})["sentence"]
    assert said.endswith(
        f", against 20 % (10 % to 30 %) with {name} left at 30. With what is usual in such a case, it is "
        "40 %."
    )
    unknown = answer(found, ["range: age is 200"], {name: 30.0})["sentence"]
    assert unknown.endswith(f"against 20 % (10 % to 30 %) with {name} left at 30.")
    assert answer(found, [], {name: 30.0})["unchanged"]["point"] == 0.2
    assert answer(replace(found, warnings=(FAR,)), [], {name: 30.0})["unchanged"] is None


def test_present_values_outside_the_data_have_no_number():
    found = replace(claim(), unchanged=Estimate(0.2, CHANCE, 0.1, 0.3, 0.95))
    told = answer(
        found, [], {"bmi": 90.0}, ["range: bmi is set to 90; the observations lie between 20 and 40"]
    )
    assert told["unchanged"] is None
    assert told["sentence"].endswith("against 40 % with no action.")
    assert told["warnings"] == [
        "leaving the present values has no number: outside the data: bmi is set to 90; the observations lie "
        "between 20 and 40"
    ]
