import csv
import json

import pytest

from rehearsal_torch.reporting import run_report
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.run_report import report
from tests.toys import recorded_runs

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


@pytest.mark.slow
def test_equal_runs_have_equal_figures(reported, sepsis_run):
    before = {path.name: path.read_bytes() for path in (reported[0] / "figures").iterdir()}
    report(sepsis_run)
    assert before == {path.name: path.read_bytes() for path in (sepsis_run / "figures").iterdir()}
    assert not any(b"<dc:date>" in content for name, content in before.items() if name.endswith(".svg"))


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


def test_ten_cases_are_told_and_the_rest_are_counted(tmp_path):
    lines = [recorded_runs.recommended() | {"index": place, "identity": f"c{place}"} for place in range(13)]
    of = material(recorded_runs.alterations(tmp_path, lines))
    said = run_report.answers(of)
    assert said[-1] == "... and 3 more: decisions.jsonl"
    assert sum(line.startswith("Case ") for line in said) == 10
    assert max(map(len, said)) <= run_report.WIDTH


def test_warnings_that_differ_in_numbers_alone_are_one_with_its_cases(tmp_path):
    rare = {"kind": "note", "text": "rare"}

    def near(text):
        return {"kind": "support", "text": text}

    lines = [
        recorded_runs.recommended()
        | {"index": place, "identity": f"c{place}", "findings": [near(f"{place}.5 away"), *more]}
        for place, more in enumerate(([rare], [], [rare], []))
    ]
    of = material(recorded_runs.alterations(tmp_path, lines))
    said = run_report.warnings(of)
    assert "  - 0.5 away (all 4 cases; the numbers are those of case c0)" in said
    assert "  - rare (cases c0, c2)" in said
    assert said[0] == "Warnings"
