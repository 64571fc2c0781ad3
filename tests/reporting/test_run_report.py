import csv
import json

import pytest

from rehearsal_torch.reporting import run_report
from rehearsal_torch.reporting.page.page_content import material
from rehearsal_torch.reporting.run_report import report
from tests.toys import recorded_runs

LINES = [recorded_runs.recommended(), recorded_runs.refused()]
FIGURES = {"answer", "training", "improvement", "patient", "truth", "truth_errors"}


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
    assert "over 5 episodes" in report(sepsis_run)
    assert rows(sepsis_run)[0]["patients"] == "5"


def test_a_run_that_was_only_trained_has_its_curve_alone(sepsis_run):
    (sepsis_run / "decisions.jsonl").unlink()
    assert "No decisions" in report(sepsis_run)
    assert {path.name for path in (sepsis_run / "figures").iterdir()} == {"training.png", "training.svg"}


@pytest.mark.parametrize("count", [2, 13, 400])
def test_a_terminal_gets_few_lines_for_any_number_of_cases(tmp_path, monkeypatch, count):
    monkeypatch.setattr(run_report, "figures", lambda run, words: {})
    finding = {"kind": "gain", "text": "not told apart " * 20}
    kinds = ("few_comparable", "gain", "graph", "present", "claim", "assumption", "noise")
    lines = [
        recorded_runs.recommended(place, f"c{place}")
        | {"findings": [finding | {"kind": kind} for kind in kinds]}
        for place in range(count)
    ]
    said = report(recorded_runs.alterations(tmp_path, lines)).splitlines()
    assert len(said) <= 23, "two more name the folder and what to type next"
    assert max(map(len, said)) <= run_report.WIDTH
    assert f"{count} cases: {count} may help" in said
    assert f"  - {count} cases of {count}: few units had this in a comparable step" in said
    assert "Case c0: may help: set rate to 0.3; 60 % to 80 %" in said
    assert sum(line.startswith("Case ") for line in said) == min(count, run_report.SHOWN)
    assert any(line.startswith("Report: ") for line in said)


def test_one_case_is_told_in_full(tmp_path):
    said = " ".join(
        " ".join(run_report.answers(material(recorded_runs.alterations(tmp_path, LINES[:1])))).split()
    )
    assert said.startswith(
        "Case ann: May help: set rate to 0.3. The estimated chance that repaid is at least 0.6"
    )
