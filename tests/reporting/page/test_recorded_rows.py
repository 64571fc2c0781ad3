"""Rows, for readers who asked for them."""

from dataclasses import replace

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


def test_episodes_step_by_step(sepsis_run):
    said = shown(sepsis_run).said
    assert "Episode stay-0, step by step" in said
    assert "time step SOFA (points), observed predicted vasopressor, observed vasopressor, changed" in said
    assert "1 12.5 12.25 0.04 0.113 279 80" in said


def test_steps_are_called_as_the_table_calls_them_also_if_it_begins_at_0(sepsis_run):
    found = material(sepsis_run, rows=True)
    for first, head in ((0, "week SOFA"), (3, "week SOFA"), (None, "time step SOFA")):
        words = replace(found.words, step="one week", first=first)
        assert f"step by step {head}" in Page(str(recorded_rows(replace(found, words=words)))).said


def test_levels_step_by_step_have_their_names(machine_run):
    said = shown(machine_run).said
    assert "Machine 0, step by step" in said
    assert "service, observed service, changed load, observed load, changed" in said
    assert "1 12.5 12.25 major none reduced reduced" in said


def test_no_rows_are_told(plain_run):
    assert "The run recorded no rows." in shown(plain_run).said
