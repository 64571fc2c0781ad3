import subprocess
import sys

import pytest

from rehearsal_torch.reporting.labels import Dose, Wording, with_unit, wording

MACHINES = {
    "unit": "machine",
    "units": "machines",
    "step": "week",
    "units_of": {"wear": "%", "oil": "ml"},
    "actions": ["service", "speed", "oil"],
}
SEPSIS = {
    "surrogate": {"doses": ["max_dose_vaso"]},
    "objective": {"reward": {"components": {}, "name": "organ SOFA"}},
}


@pytest.mark.parametrize("weights", [{"SOFA": -1, "GCS": 1}, {"SOFA": -2}, {"SOFA": "-1"}, None])
def test_other_rewards_have_neutral_words(weights):
    words = wording({"objective": {"reward": {"weights": weights}}})
    assert words == Wording()
    assert (words.total, words.time) == ("Cumulative reward", "Step")


def test_a_data_set_says_what_its_units_and_actions_are_called():
    words = wording(SEPSIS, {**MACHINES, "reward": {"weights": {"wear": -1}, "components": None}})
    assert (words.subject, words.subjects, words.actions) == ("machine", "machines", "actions")
    assert (words.variable, words.sign, words.level) == ("wear", -1.0, "wear (%)")
    assert (words.time, words.at(0)) == ("Step (one week each)", "Step 1")
    timed = wording({}, MACHINES | {"step": "", "time": "clock_hour", "first": 0})
    assert (timed.time, timed.at(0)) == ("Clock hour", "Clock hour 0")
    assert words.file == "machine"
    # Letters differ, where names begin alike.
    assert [each.letter for each in words.doses] == ["S", "P", "O"]
    # A level without a name may count down.
    assert [each.upwards for each in words.doses] == ["higher value", "higher value", "more"]
    assert words.doses[2] == Dose("O", "oil", "ml")
    assert words.dose(3).name == "action 4"
    assert words.an_action == "an action"
    assert words.titled("7") == "Machine 7"
    assert wording(SEPSIS).subject == "patient"
    assert wording(SEPSIS).doses == (Dose("V", "vasopressor", "mcg/kg/min"),)


@pytest.mark.parametrize(
    ("name", "unit", "text"),
    [
        ("Hb (g/dl)", "g/dl", "Hb (g/dl)"),
        ("age in years", "years", "age in years"),
        ("dose [mg]", "mg", "dose [mg]"),
        ("mass", "s", "mass (s)"),
        ("wear", "%", "wear (%)"),
        ("wear", "", "wear"),
    ],
)
def test_a_unit_that_the_name_has_is_written_once(name, unit, text):
    assert with_unit(name, unit) == text


@pytest.mark.parametrize("odd", [3, "text", [1], {"service": 2}])
def test_edited_words_of_another_form_are_left_out(odd):
    words = wording(SEPSIS, {**MACHINES, "units_of": odd, "levels": odd, "actions": ["service", "oil"]})
    assert [each.name for each in words.doses] == ["service", "oil"]
    assert words.doses[0].levels == ()
    fallen_back = wording(SEPSIS, {**MACHINES, "actions": 3})
    assert [each.name for each in fallen_back.doses] == ["max_dose_vaso"]


def test_words_and_answers_load_no_drawing():
    modules = (
        *("api.rehearse", "api.decisions", "api.episode_query", "api.optimiser", "api.episode_model"),
        *("reporting.labels", "reporting.alteration_report", "reporting.decision_frame"),
        *("reporting.trial_report", "reporting.page.page_content"),
    )
    imports = "; ".join(f"import rehearsal_torch.{name}" for name in modules)
    program = f"import sys; {imports}; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
