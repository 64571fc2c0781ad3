"""The report of a run of trials."""

import csv
import io

from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.evaluation.trial_rows import scored
from rehearsal_torch.reporting import trial_report
from rehearsal_torch.reporting.style import drawing
from tests.toys.trial_lines import line


def run(tmp_path, lines):
    choices = {"dataset": "world", "decision": "method"}
    return Recorded(tmp_path, lines, config={"seed": 3}, choices=choices, kind="optimise")


def test_a_run_is_reported_round_by_round(tmp_path):
    made = run(tmp_path, [line(0, 2.0, 3.0), line(1, 4.0, 9.0)])
    assert trial_report.concerns(made)
    text = trial_report.tables(made)
    assert "Recommended now: a 0.25; predicted reward 4.000" in text
    assert "9.000 of 10.000" in text
    trial_report.written(made)
    (first, second) = csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text()))
    assert (first["reward"], second["set/a"], second["best_expected"]) == ("2.1", "0.5", "4.0")
    with drawing():
        assert set(trial_report.figures(made)) == {"rounds"}


def test_a_suggestion_without_a_world_is_reported_as_well(tmp_path):
    lone = {key: value for key, value in line(0, 0.0, 0.0).items() if key not in ("score", "reward")} | {
        "score": {}
    }
    made = run(tmp_path, [lone])
    assert not scored(lone)
    assert "Recommended now" in trial_report.tables(made)
    trial_report.written(made)
    assert trial_report.figures(made) == {}
