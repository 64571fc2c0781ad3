"""Comparisons with no action, parts of the method, and held-out outcomes."""

from rehearsal_torch.reporting import run_report
from rehearsal_torch.reporting.page.comparison import comparison
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{comparison(of)}</html>')


def test_the_numbers_are_those_of_the_console(tmp_path, monkeypatch):
    monkeypatch.setattr(run_report, "figures", lambda run, words: {})
    run = recorded_runs.alterations(tmp_path)
    page, console = shown(material(run)), " ".join(run_report.report(run, tables=True).split())
    assert page.faults == []
    assert "estimated probability 0.650" in page.said
    assert "estimated probability │ 0.650" in console
    score = "Held-out score of the untouched rows: none, as no row was held out"
    assert score in page.said
    assert score in console
