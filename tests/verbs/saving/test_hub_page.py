"""The page of a saved model: YAML that the Hub reads, measured figures, names that break nothing."""

import yaml
from huggingface_hub import ModelCard

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.verbs.saving.hub_page import LONGEST, NAMED, TAGS, hub_page
from tests.verbs.test_rehearse import TASK

CARD = {
    "method": "care",
    "seed": 3,
    "data_fingerprint": "0f" * 32,
    "limits": ["One limit.", "Another\nlimit."],
    "held_out": {
        "brier": {"rows": 30, "own": 0.2, "constant": 0.25},
        "in words": "Held-out score of 30 rows: 0.200",
    },
}
LABELS = {"class": "a.b.C", "data_fingerprint": "0f" * 32, "seed": "3"}
# Of huggingface.co/docs/hub/model-cards.
KEYS = {"license", "library_name", "tags", "model-index"}


def page(card=CARD, **changes):
    """The YAML and the text below it."""
    text = hub_page(card, RehearsalTask.of(TASK | changes), LABELS)
    empty, front, body = text.split("---\n", 2)
    assert empty == ""
    return yaml.safe_load(front), body


def test_the_front_holds_documented_keys_and_the_measured_score():
    front, _ = page()
    assert set(front) == KEYS
    assert (front["license"], front["library_name"]) == ("unknown", "rehearsal_torch")
    assert front["tags"] == [*TAGS, "method-care"]
    ((entry,), (result,)) = front["model-index"], front["model-index"][0]["results"]
    assert entry["name"] == "care for Y1, Y2"
    assert set(result) == {"task", "dataset", "metrics"}
    assert result["task"]["type"] == "tabular-classification"
    assert set(result["dataset"]) == {"type", "name"}
    assert [(each["type"], each["value"]) for each in result["metrics"]] == [
        ("brier_score", 0.2),
        ("brier_score", 0.25),
    ]
    assert all("30 held-out rows" in each["name"] for each in result["metrics"])


def test_what_was_not_measured_is_not_claimed():
    front, body = page(CARD | {"held_out": "not measured: no row was held out"})
    assert set(front) == KEYS - {"model-index"}
    assert "## Held-out rows\n\nnot measured: no row was held out\n" in body


def test_question_limits_and_origin_are_said():
    _, body = page()
    assert "# A rehearsal model: `care` for `Y1`, `Y2`" in body
    assert "| `A2` | 0 to 1 |" in body
    assert "- `Y1` is at least 0.6\n- `Y2` is at least 0.3\n" in body
    assert "- One limit.\n- Another limit.\n- The package does not know the terms" in body
    assert "Held-out score of 30 rows: 0.200" in body
    assert "| seed | `3` |\n" in body


def test_levels_and_sums_are_written_out():
    region = {"names": ["Y1", "Y2"], "normals": [[1.0, 2.0], [0.0, -2.0]], "offsets": [3.0, -1.0]}
    _, body = page(region=region, box={"A2": {"values": [0, 0.5, 1]}})
    assert "- 1 `Y1` + 2 `Y2` is at most 3\n- `Y2` is at least 0.5\n" in body
    assert "| `A2` | one of 0, 0.5, 1 |" in body


def test_names_from_a_table_end_neither_yaml_nor_code_nor_cells():
    odd, long, method = "a`|b # x: {y", "z" * 200, "a`\n---\nlicense: mit\n"
    names = [f"X{one}" for one in range(NAMED + 7)]
    task = {
        "graph": {"parents": {odd: [*names, long], "Y": [odd]}},
        "context": [*names, long],
        "box": {odd: [0, 1]},
        "region": {"Y": [0, None]},
    }
    front, body = page(CARD | {"method": method}, **task)
    assert set(front) == KEYS
    assert front["license"] == "unknown"
    assert front["tags"][-1] == "method-a` --- license: mit"
    assert "| `a'/b # x: {y` | 0 to 1 |" in body
    assert "# A rehearsal model: `a' --- license: mit` for" in body
    assert "`X19` and 8 more of a case" in body
    assert "z" * (LONGEST + 1) not in body
    assert "\n---" not in body


def test_the_hubs_own_reader_finds_the_score(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(hub_page(CARD, RehearsalTask.of(TASK), LABELS), encoding="utf-8")
    found = ModelCard.load(path)
    assert found.data.license == "unknown"
    assert found.data.library_name == "rehearsal_torch"
    assert found.data.model_name == "care for Y1, Y2"
    assert [(one.metric_type, one.metric_value) for one in found.data.eval_results] == [
        ("brier_score", 0.2),
        ("brier_score", 0.25),
    ]


def test_texts_stand_in_the_place_of_codes():
    task = {
        "graph": ["{ward age} -> {smoker severity}", "smoker -> severity"],
        "context": ["ward", "age"],
        "box": {"smoker": {"values": ["no", "yes"]}},
        "region": "severity <= medium",
        "codings": {
            "smoker": ["no", "yes"],
            "severity": ["low", "medium", "high"],
            "ward": {"classes": ["A", "B", "C"], "reference": "A"},
        },
    }
    text = hub_page(CARD, RehearsalTask.of(task), LABELS)
    assert "Given `ward`, `age` of a case" in text
    assert "| `smoker` | one of no, yes |" in text
    assert "- `severity at most medium`" in text


def test_lists_that_are_cut_say_how_much_is_left_and_numbers_keep_their_digits():
    names = [f"a{place}" for place in range(NAMED + 3)]
    task = {
        "graph": {"parents": {"y": names}},
        "context": [],
        "box": {name: [0, 1234567.8] for name in names},
        "region": {"y": [0.1234567, None]},
        "candidates": [[name] for name in names],
    }
    text = hub_page(CARD, RehearsalTask.of(task), LABELS)
    assert "| `...` | and 3 more |" in text
    assert "| `a0` | 0 to 1234567.8 |" in text
    assert "- `y` is at least 0.1234567" in text
