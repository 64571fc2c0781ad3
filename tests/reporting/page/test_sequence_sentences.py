"""Sentences of decisions about episodes."""

from rehearsal_torch.reporting.page.sequence_sentences import said_of_episode
from rehearsal_torch.reporting.wording import Dose, Wording
from tests.conftest import decision

WORDS = Wording(
    "SOFA",
    -1.0,
    "points",
    "4 h",
    (Dose("V", "vasopressor", "mcg/kg/min"), Dose("F", "fluids", "mL/4 h")),
)


def test_a_dose_that_keeps_its_level_stays_as_it_was_given():
    one = decision(0) | {"doses": {"action[1]": [0.113, 285.0]}}
    one["trajectory"]["level_doses"] = [[0.0, 0.0], [0.05, 285.0], [0.0, 0.0]]
    first = "Time step 1: vasopressor from 0.04 to 0.113 mcg/kg/min, fluids stays at 279 mL/4 h."
    assert said_of_episode(one, WORDS)[2][0] == first
    withdrawn = one | {"status": "leave", "alteration": None}
    withdrawn["trace"] = one["trace"] | {"would_set": {"action[1]": 12}}
    assert said_of_episode(withdrawn, WORDS)[2][-1] == f"Withdrawn: {first}"


def test_models_that_disagree_bookkeeping_and_truth_are_said():
    one = decision(1)
    one["trajectory"] |= {
        "member_gains": [4.0, 7.5],
        "related": {"with doses": {"observed": -60.0, "value": -63.0}},
    }
    one["score"] = {"true_observed": -60.0, "true_value": -58.0}
    _, _, said = said_of_episode(one, WORDS)
    assert said[1].endswith("10.0% better; the 2 models of the ensemble predict gains of 4 to 7.5.")
    one["trajectory"]["member_gains"] = [4.0, 4.0]
    assert said_of_episode(one, WORDS)[2][1].endswith("; the 2 models of the ensemble predict a gain of 4.")
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
        "Withdrawn: Time step 1: vasopressor stays at 0.04 mcg/kg/min, fluids from 279 to 10 mL/4 h.",
        "Warning: far.",
    ]
    assert (
        said_of_episode(one | {"reason": {"kind": "no_gain", "text": "none"}}, WORDS)[1]
        == "No change is recommended."
    )


def test_without_doses_the_number_of_the_action_is_named():
    one = decision(0)
    one["trajectory"] |= {"doses": [], "observed_doses": []}
    assert said_of_episode(one, Wording())[2][0] == "Time step 1: action 12."
    assert said_of_episode(one | {"alteration": {"price": 2}}, Wording())[2][0] == "price."
