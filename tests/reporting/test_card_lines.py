"""A data card in short, and in full: what is written how, and that nothing is cut."""

from rehearsal_torch.reporting.card_lines import WIDTH, whole

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
        "bows": [["a", "b"]],
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
