import csv
import json
import statistics

import pytest

from rehearsal_torch.reporting.run_report import report

FIGURES = {"training", "improvement", "outcomes", "effort", "patient", "truth", "truth_errors"}


def rows(folder):
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_all_figures_of_a_sequence_run_are_written_as_png_and_svg(reported):
    folder, _ = reported
    assert {path.name for path in (folder / "figures").iterdir()} == {
        f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")
    }
    for path in (folder / "figures").glob("*.png"):
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert path.stat().st_size > 5000


def test_the_table_equals_a_hand_computation(reported):
    folder, _ = reported
    (row,) = rows(folder)
    assert (row["search"], row["k"], row["patients"]) == ("branch_and_bound", "3", "5")
    assert float(row["observed"]) == pytest.approx((50 + 60 + 40 + 80 + 20) / 5)
    assert float(row["improvement"]) == pytest.approx(0.05)
    assert float(row["improvement_low"]) < 0.05 < float(row["improvement_high"])
    assert float(row["improvement_median"]) == pytest.approx(0.04)
    assert float(row["proven"]) == pytest.approx(0.8)
    assert float(row["seconds_median"]) == pytest.approx(0.3)
    assert float(row["expanded_median"]) == pytest.approx(30)
    assert float(row["ebf"]) == pytest.approx(1.2)
    assert float(row["score/true_improvement"]) == pytest.approx(0.025)
    assert float(row["truth/rmse, learnt"]) == pytest.approx(3.0)
    assert float(row["truth/regret, true"]) == pytest.approx(2.0)
    assert not any("GCS" in name for name in row)
    assert float(row["score/regret"]) == pytest.approx(statistics.fmean([0, 0.5, 1, 1.5, 2]))


@pytest.mark.slow
def test_cautions_of_the_data_stand_below_the_table(sepsis_run):
    (sepsis_run / "data.yaml").write_text('source: here\ncaution: none\n"caution: few": too few to count\n')
    assert "\n  - few: too few to count\n" in report(sepsis_run)


@pytest.mark.slow
def test_equal_runs_have_equal_figures(reported, sepsis_run):
    before = {path.name: path.read_bytes() for path in (reported[0] / "figures").iterdir()}
    report(sepsis_run)
    assert before == {path.name: path.read_bytes() for path in (sepsis_run / "figures").iterdir()}
    assert not any(b"<dc:date>" in content for name, content in before.items() if name.endswith(".svg"))


def test_a_run_without_sequences_has_a_plain_table_and_no_sequence_figures(plain_run):
    shown = report(plain_run)
    (row,) = rows(plain_run)
    assert (row["decisions"], row["refused"]) == ("5", "1")
    assert float(row["value"]) == pytest.approx(2.0)
    assert float(row["score/success"]) == pytest.approx(0.5)
    assert "mean value: 2" in shown
    assert not (plain_run / "figures").exists()


@pytest.mark.slow
def test_a_line_cut_off_by_a_kill_is_left_out(sepsis_run):
    path = sepsis_run / "decisions.jsonl"
    path.write_text(path.read_text() + json.dumps({"index": 5})[:-4])
    assert "5 episodes, at most" in report(sepsis_run)
    assert rows(sepsis_run)[0]["patients"] == "5"


def test_a_run_that_was_only_trained_has_its_curve_alone(sepsis_run):
    (sepsis_run / "decisions.jsonl").unlink()
    assert "No decisions" in report(sepsis_run)
    assert {path.name for path in (sepsis_run / "figures").iterdir()} == {"training.png", "training.svg"}


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        report(tmp_path)
