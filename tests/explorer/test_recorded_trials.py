"""A run of trials is shown as it was recorded, with the way to a file of trials."""

import json
from html import unescape

import pytest
import yaml

from rehearsal_torch.explorer.open_run import recorded
from rehearsal_torch.explorer.server import TEMPLATES
from rehearsal_torch.explorer.session_choice import session_for
from rehearsal_torch.explorer.trial_session import RecordedTrials
from tests.toys.served import Served

LINES = [
    {
        "index": place,
        "kind": "optimise",
        "identity": str(place),
        "status": "may",
        "alteration": {"a": 0.25 * place},
        "value": 1.0,
        "estimate": {"point": 2.0, "of": "expected reward", "lower": 1.5, "upper": 2.5, "level": 0.95},
        "recommendation": {"a": 0.5},
        "trace": {},
        "reward": reward,
        **({"answer": {"rows": {"a": [0.25 * place], "Y": [reward]}, "altered": []}} if reward else {}),
    }
    for place, reward in enumerate([1.0, 3.0, 2.0, None])
]


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    record = {"kind": "optimise", "choices": {"decision": "ucb"}, "script": "decide", "overrides": []}
    (folder / "run.json").write_text(json.dumps(record))
    config = {"dataset": {"path": "my table.csv", "task": "task.yaml"}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    card = {"actions": {"a": [0, 1]}, "reward": {"weights": {"Y": 1.0}}, "caution": "simulated"}
    (folder / "data.yaml").write_text(yaml.safe_dump(card))
    return folder


def lines(run):
    """The lines of the page that make a file of trials."""
    session = session_for(run)
    page = TEMPLATES.get_template(session.page).render({**session.describe(), **session.opening()})
    return unescape(page[page.index("<pre") : page.index("</pre>")]).partition(">")[2].splitlines()


def test_what_was_tried_is_shown(run):
    found = session_for(run).trials()
    assert [row["id"] for row in found["rows"]] == [4, 3, 2, 1]
    assert [row["state"] for row in found["rows"]] == ["proposed", "completed", "completed", "completed"]
    assert found["rows"][1]["nodes"] == {"Y": 2.0}
    assert found["course"] == {"numbers": [1, 2, 3], "rewards": [1.0, 3.0, 2.0], "best": [1.0, 3.0, 3.0]}
    assert (found["summary"], found["pending"]) == ("4 trials; a result is known of 3.", [])


def test_one_trial_after_the_experiments_of_a_table_is_counted_as_one(run):
    (run / "decisions.jsonl").write_text(json.dumps(LINES[3]) + "\n")
    card = yaml.safe_load((run / "data.yaml").read_text()) | {"rows": 9, "settable": {"Z": 1}}
    (run / "data.yaml").write_text(yaml.safe_dump(card | {"source": "brews.csv"}))
    assert [action["name"] for action in session_for(run).describe()["actions"]] == ["a", "Z"]
    told = session_for(run)
    assert (
        told.trials()["summary"] == "1 trial after the 9 experiments of brews.csv; a result is known of none."
    )
    assert told.describe()["title"] == "brews.csv: which setting has the largest expected Y?"


def test_the_recommendation_is_that_of_the_report_and_a_file_can_be_made(run):
    told = RecordedTrials(recorded(run)).describe()
    assert told["live"] is False
    recommended = RecordedTrials(recorded(run)).opening()["recommended"]
    assert recommended["headline"] == "Try a at 0.75."
    assert recommended["said"][2] == "Predicted Y of this setting: 2 (95% interval 1.5 to 2.5)."
    assert lines(run) == [
        "import rehearsal_torch as rt",
        'optimiser = rt.CausalOptimiser(\'task.yaml\', file="trials.json", method="ucb")',
        "optimiser.read('my table.csv')  # the experiments so far",
        "# then, in a terminal: rehearsal explore trials.json method=ucb",
    ]
    assert told["cautions"] == ["simulated"]


def test_it_cannot_be_continued(run):
    served = Served(session_for(run))
    try:
        text = served.ask("/")[2]
        assert "4 trials; a result is known of 3." in text
        assert "data-reread" not in text
        for path in ("/api/ask", "/api/tell", "/api/adopt"):
            assert served.ask(path, {"count": 1})[0] == 404
    finally:
        served.end()


def test_a_refusal_is_no_proposal(run):
    reason = {"kind": "no_path", "text": "no path"}
    refused = LINES[3] | {"index": 4, "status": "leave", "alteration": None, "reason": reason}
    with (run / "decisions.jsonl").open("a") as stream:
        stream.write(json.dumps(refused) + "\n")
    row = session_for(run).trials()["rows"][0]
    assert (row["id"], row["state"], row["settings"]) == (5, "refused", {})


def test_a_problem_file_has_the_task_and_the_experiments(run):
    (run / "config.yaml").write_text(yaml.safe_dump({"dataset": {"path": "problem.yaml", "fixed": None}}))
    assert lines(run) == [
        "import rehearsal_torch as rt",
        'optimiser = rt.CausalOptimiser(\'problem.yaml\', file="trials.json", method="ucb")',
        "# then, in a terminal: rehearsal explore trials.json method=ucb",
    ]
