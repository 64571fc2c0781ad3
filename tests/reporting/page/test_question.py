"""What a run was asked."""

import pytest

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.question import question, region, settable
from tests.toys import recorded_runs


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
