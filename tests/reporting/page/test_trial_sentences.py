"""Sentences of trials."""

import pytest

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.trial_sentences import said_of_trials
from tests.toys import recorded_runs


def test_a_world_knows_the_truth_of_a_recommendation(tmp_path):
    title, headline, said = said_of_trials(material(recorded_runs.trials(tmp_path)))
    assert (title, headline) == ("Recommendation after 3 decisions", "Keep a at 0.25.")
    assert said == [
        "Predicted reward of this setting: 4; the run recorded no interval for it.",
        "The truth, which this simulated world knows: this setting has an expected reward of 8, the best of "
        "the start design has 1, the best possible 10.",
    ]


def test_a_system_of_ones_own_has_its_best_experiment_and_the_next_one(tmp_path):
    _, headline, said = said_of_trials(material(recorded_runs.trials(tmp_path, own=True)))
    assert headline == "Try a at 0.5."
    assert said[0].endswith("is chosen for what it may bring, or teach, not as the best known setting.")
    assert said[1] == "To keep, if you had to stop now: a at 0.25."
    assert said[3:] == ["Largest reward that was observed in the experiments so far: 3.5, at a 0.75."]


def test_units_stand_behind_settings_and_the_same_setting_is_said_once(tmp_path):
    found = material(recorded_runs.trials(tmp_path, own=True))
    found.run.words["units_of"] = {"a": "ml"}
    last = found.run.decisions[-1]
    last["recommendation"] = dict(last["alteration"])
    _, headline, said = said_of_trials(found)
    assert headline == "Try a at 0.5 ml."
    assert said[0] == "It is also the setting to keep, if you had to stop now."


def test_an_interval_is_shown_where_there_is_one(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    found.run.decisions[-1]["estimate"] |= {"lower": 3.0, "upper": 5.5, "level": 0.9}
    said = said_of_trials(found)[2]
    assert said[0] == "Predicted reward of this setting: 4 (90% interval 3 to 5.5)."
    assert said[1].startswith("The interval covers what is not known of the mechanisms")


@pytest.mark.parametrize(
    ("chance", "words"), [(0.84, "84%"), (0.001, "below 1%"), (0.999, "above 99%"), (None, "")]
)
def test_the_best_other_setting_is_named_with_the_chance_to_beat_it(tmp_path, chance, words):
    found = material(recorded_runs.trials(tmp_path))
    beside = {"action": {"a": 0.5}, "predicted": 3.5, "chance": chance}
    found.run.decisions[-1]["trace"] |= {"runner_up": beside}
    said = [text for text in said_of_trials(found)[2] if "best other setting" in text]
    assert said == (
        [
            "The best other setting that was tried is a at 0.5, with a predicted reward of 3.5; the claimed "
            f"probability that the one to keep is better is {words}."
        ]
        if words
        else []
    )


def test_where_all_settings_wait_the_one_to_keep_is_said_with_the_reason(tmp_path):
    found = material(recorded_runs.trials(tmp_path, own=True))
    found.run.decisions[-1] |= {"alteration": None, "reason": "all of them wait"}
    title, headline, said = said_of_trials(found)
    assert title == "Next experiment"
    assert headline == "There is nothing to try before further results are known."
    assert said[0] == "To keep, if you had to stop now: a at 0.25."
    assert said[-1] == "Why: all of them wait."


def test_a_refusal_keeps_nothing(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    found.run.decisions[-1] |= {"alteration": None, "recommendation": None, "reason": "too few"}
    found.run.decisions[-1] |= {"status": "refused", "estimate": None}
    _, headline, said = said_of_trials(found)
    assert headline == "Nothing is recommended."
    assert "Why: too few." in said
