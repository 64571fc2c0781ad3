"""What a run was asked."""

import pytest

from rehearsal_torch.reporting.page.data_card import WIDTH, question, region, settable, whole
from rehearsal_torch.reporting.page.page_content import material
from tests.toys import recorded_runs


@pytest.mark.parametrize(
    ("normals", "offsets", "faces"),
    [
        ([[1.0, 0.0]], [2.0], ["a ≤ 2"]),
        ([[-2.0, 0.0]], [1.0], ["a ≥ -0.5"]),
        ([[1.0, -2.0]], [3.0], ["a - 2 times b ≤ 3"]),
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
    assert settable({"actions": {}, "settable": {"X": [0, 1]}}, "actions", "settable") == ["X (from 0 to 1)"]
    assert settable({"box": {"sex": [1, 1]}}, "box") == ["sex (stays at 1)"]


def test_targets_of_a_reward(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    found.card["reward"] = {"targets": {"y": 3.0}}
    assert question(found)[1] == "The reward grows as outcomes come near their targets: y to 3."
    found.card["reward"] = {"weights": {"y": 1, "waste": -0.2}}
    assert question(found)[1] == "The reward is y - 0.2 times waste."


CARD = {
    "source": "diabetes.csv",
    "rows": 442,
    "kept_aside": 0,
    "desired": 0.5,
    "patients": {"train": 2, "test": 1},
    "splits": {"train": {"machines": 59}, "test": {"machines": 15}},
    "graph": {
        "cliques": [["age"], ["u", "v"]],
        "edges": [["age", "bmi"], ["bmi", "u"]],
        "hidden": [["a", "b"]],
    },
    "box": {"bmi": [20.0, 35.0], "dose": {"values": [0, 1, 2]}},
    "region": {"names": ["progression"], "normals": [[1.0]], "offsets": [140.0]},
    "candidates": [["bmi"], ["bp"], ["bmi", "bp"]],
    "ranges": {"age": [19.0, 79.0], "sex": [1.0, 2.0]},
    "features": {"wear": {"min": 6.25, "unit": "%"}},
    "caution": "observational data",
    "findings": [{"kind": "refuted_graph", "text": "is wrong"}],
    "fingerprint": "92b6",
}


def test_the_whole_card_is_written_as_one_would_write_it():
    assert whole(CARD)[5:] == [
        "splits: train (machines 59), test (machines 15)",
        "graph: age -> bmi, bmi -> u, u <-> v, a <-> b",
        "may be set: bmi 20 to 35, dose one of 0, 1, 2",
        "desired: progression ≤ 140",
        "sets of variables that may be set together: bmi; bp; bmi and bp",
        "observed ranges: age 19 to 79, sex 1 to 2",
        "features:",
        "  wear: min 6.25, unit %",
        "fingerprint: 92b6",
    ]


def test_long_entries_are_wrapped_between_words_and_lose_nothing():
    names = {f"variable_{place}": [-1.0, float(place)] for place in range(40)}
    lines = whole({"ranges": names})
    assert max(map(len, lines)) <= WIDTH
    assert all(line.startswith("    ") for line in lines[1:])
    said = " ".join(line.strip() for line in lines)
    assert said == "observed ranges: " + ", ".join(f"variable_{place} -1 to {place}" for place in range(40))
