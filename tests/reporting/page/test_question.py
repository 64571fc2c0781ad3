"""What a run was asked."""

import pytest

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.question import question, region, settable
from tests.toys import recorded_runs


def test_a_run_of_alterations(tmp_path):
    said = question(material(recorded_runs.alterations(tmp_path)))
    assert said[:3] == [
        "What should be set in each case? Candidates: rate (from 0 to 1).",
        "Wanted: an outcome with repaid ≥ 0.6.",
        "Known of each case before deciding: score.",
    ]
    assert said[-1] == "Of the rows that the method learnt from, 58.0% have such an outcome."


def test_a_run_of_trials(tmp_path):
    assert question(material(recorded_runs.trials(tmp_path))) == [
        "Which setting has the largest expected reward, and which one should be tried next? Free to set: "
        "a (from 0 to 1).",
        "The reward is y.",
    ]


def test_a_run_of_episodes_names_doses_and_units(sepsis_run):
    assert question(material(sepsis_run)) == [
        "Looking back at 5 episodes: which changes, of at most 3 actions in each, would have lowered the "
        "cumulative SOFA (points)?",
        "An action sets vasopressor (mcg/kg/min) and fluids (mL/4 h).",
    ]


def test_a_run_of_other_episodes_has_the_words_of_its_data_set(machine_run):
    assert question(material(machine_run)) == [
        "Looking back at 2 machines: which changes, of at most 3 actions in each, would have lowered the "
        "cumulative risk and cost?",
        "An action sets service (none, minor, major) and load (full, reduced).",
    ]


def test_without_a_card_nothing_is_said(tmp_path):
    assert question(material(recorded_runs.alterations(tmp_path, card={}))) == []


@pytest.mark.parametrize(
    ("normals", "offsets", "faces"),
    [
        ([[1.0, 0.0]], [2.0], ["a ≤ 2"]),
        ([[-2.0, 0.0]], [1.0], ["a ≥ -0.5"]),
        ([[1.0, -2.0]], [3.0], ["a + -2 times b ≤ 3"]),
        ([[0.0, 0.0]], [3.0], []),
        ([[1.0]], [3.0], []),
        ([["x", 1.0]], [3.0], []),
        ("text", None, []),
    ],
)
def test_a_region_in_words(normals, offsets, faces):
    assert region({"region": {"names": ["a", "b"], "normals": normals, "offsets": offsets}}) == faces


def test_what_may_be_set():
    card = {"box": {"a": [0, 1], "b": {"values": [1, 2, 5]}, "c": "?"}}
    assert settable(card, "box") == ["a (from 0 to 1)", "b (one of 1, 2, 5)", "c"]
    assert settable({"box": {"sex": [1, 1]}}, "box") == ["sex (stays at 1)"]


def test_targets_of_a_reward(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    found.card["reward"] = {"targets": {"y": 3.0}}
    assert question(found)[1] == "The reward grows as outcomes come near their targets: y to 3."
    found.card["reward"] = {"weights": {"y": 1, "waste": -0.2}}
    assert question(found)[1] == "The reward is y + -0.2 times waste."


def test_present_values_are_what_decisions_are_compared_with(tmp_path):
    lines = [recorded_runs.recommended() | {"present": {"rate": 0.5}}]
    (said,) = [
        text
        for text in question(material(recorded_runs.alterations(tmp_path, lines)))
        if "present values" in text
    ]
    assert said.endswith("the comparison is with these; what is usual in such a case stands beside it.")
