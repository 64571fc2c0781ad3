"""The report of a run of trials."""

import csv
import io

from rehearsal_torch.evaluation.claim_rows import scored_trial
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.reporting import trial_report
from rehearsal_torch.reporting.figure_style import drawing
from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.run_report import figures
from tests.toys.trial_lines import line


def run(tmp_path, lines):
    choices = {"dataset": "world", "decision": "method"}
    return Recorded(tmp_path, lines, config={"seed": 3}, choices=choices, kind="optimise")


def test_a_run_is_reported_round_by_round(tmp_path):
    made = run(tmp_path, [line(0, 2.0, 3.0), line(1, 4.0, 9.0)])
    assert made.of_trials
    assert "9.000 of 10.000" in trial_report.reached(made)[0]
    trial_report.written(made)
    (first, second) = csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text()))
    assert (first["reward"], second["set/a"], second["best_expected"]) == ("2.1", "0.5", "4.0")
    with drawing():
        assert set(figures(made, Wording())) == {"rounds"}


def test_a_suggestion_without_a_world_is_reported_as_well(tmp_path):
    lone = {key: value for key, value in line(0, 0.0, 0.0).items() if key not in ("score", "reward")} | {
        "score": {}
    }
    made = run(tmp_path, [lone])
    assert not scored_trial(lone)
    assert trial_report.reached(made) == []
    trial_report.written(made)
    assert figures(made, Wording()) == {}


def test_what_is_predicted_of_the_setting_tried_is_not_what_is_predicted_of_the_one_to_keep(tmp_path):
    tried = line(0, 2.0, 3.0) | {"trace": {"predicted_reward": 3.25}}
    same = line(1, 2.0, 3.0) | {"recommendation": {"a": 0.5}}
    made = run(tmp_path, [tried, line(0, 2.0, 3.0), same])
    heads, body = trial_report.last_rounds(made)
    places = [heads.index(name) for name in ("predicted", "of the one to keep")]
    assert [[cells[place] for place in places] for cells in body] == [
        ["3.250", "4.000"],
        ["-", "4.000"],
        ["4.000", "4.000"],
    ]
    trial_report.written(made)
    found = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert [one["predicted"] for one in found] == ["3.25", "", "4.0"]
    assert [one["predicted_recommended"] for one in found] == ["4.0"] * 3
