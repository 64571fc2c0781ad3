"""Rows, for readers who asked for them."""

from rehearsal_torch.reporting.page.material import material
from rehearsal_torch.reporting.page.recorded_rows import recorded_rows
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(run):
    return Page(f'<html lang="en"><h1>t</h1>{recorded_rows(material(run, rows=True))}</html>')


def test_rows_are_shown_only_when_asked_for(tmp_path):
    run = recorded_runs.alterations(tmp_path)
    assert recorded_rows(material(run)) == ""
    page = shown(run)
    assert page.faults == []
    assert "What was known of each case case score ann 0.25 bob 0.5" in page.said


def test_answers_of_a_world(tmp_path):
    line = recorded_runs.recommended()
    line["answer"] = {"rows": {"rate": [0.3], "repaid": [0.65]}, "altered": [[0, 0]]}
    said = shown(recorded_runs.alterations(tmp_path, [line])).said
    assert "What was observed after each decision case rate repaid ann 0.3 0.65" in said
