"""Comparisons with no action, parts of the method, and held-out outcomes."""

from rehearsal_torch.reporting import run_report
from rehearsal_torch.reporting.page.comparison import comparison, indented
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{comparison(of)}</html>')


def test_the_numbers_are_those_of_the_console(tmp_path, monkeypatch):
    monkeypatch.setattr(run_report, "_figures", lambda run, words: {})
    run = recorded_runs.alterations(tmp_path)
    page, console = shown(material(run)), " ".join(run_report.report(run, tables=True).split())
    assert page.faults == []
    assert "estimated probability 0.650" in page.said
    assert "estimated probability │ 0.650" in console
    score = "Held-out score of the untouched rows: none, as no row was held out"
    assert score in page.said
    assert score in console


def test_parts_of_a_method_stand_beside_its_estimate(tmp_path):
    line = recorded_runs.recommended()
    line["trace"]["claimed_in_sample"] = 0.875
    said = shown(material(recorded_runs.alterations(tmp_path, [line, recorded_runs.refused()]))).said
    assert "case no action decision by linear before correction for the choice" in said
    assert "ann 0.600 0.800 0.700 0.875 bob 0.500 - - -" in said


def test_rows_that_were_held_out_are_scored(tmp_path):
    line = recorded_runs.recommended()
    line["score"] = {"desired_no_action": 1.0, "predicted_no_action": 0.5, "constant_no_action": 0.0}
    assert (
        "Held-out score of 1 untouched rows (Brier, lower is better): 0.25;"
        in shown(material(recorded_runs.alterations(tmp_path, [line]))).said
    )


def test_trials_are_compared_round_by_round(tmp_path):
    said = shown(material(recorded_runs.trials(tmp_path))).said
    heads = "round tried reward expected best so far predicted of the one to keep seconds"
    assert f"The last 3 of 3 trials {heads}" in said
    assert "3 a 0.5 4.100 4.000 4.000 4.500 4.000 0.50" in said
    assert "Its true expected reward: 8.000 of 10.000 (best of the start design 1.000;" in said


def test_episodes_are_summed_up(sepsis_run):
    said = shown(material(sepsis_run)).said
    assert "branch_and_bound 3 5 50 5" in said
    assert "Mean scores, computed by the problem" in said


def test_lines_that_belong_to_the_one_before_are_set_in():
    assert indented([["a", "1"], ["  b", "2"]]) == [["a", "1"], ['<span class="sub">b</span>', "2"]]
