"""The answers, case by case."""

from rehearsal_torch.reporting.page.answers import answers, verdicts
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{answers(of)}</html>')


def test_verdicts_count_the_answers():
    refused = recorded_runs.refused()
    nothing = refused | {"reason": {"kind": "no_gain", "text": "nothing is better"}}
    lines = [recorded_runs.recommended(), refused, refused, nothing]
    assert verdicts(lines) == "1 with a recommendation, 1 without action, 2 refused"
    assert verdicts([]) == ""


def test_values_of_held_out_rows_are_left_out_unless_rows_are_asked_for(tmp_path):
    line = recorded_runs.recommended() | {"present": {"rate": 0.7}, "score": {"desired_no_action": 1.0}}
    folder = recorded_runs.alterations(tmp_path, [line])
    said = shown(material(folder)).said
    assert "The cases are rows of the table that were held out. What is known of each is left out" in said
    assert "rehearsal report RUN rows=true" in said
    assert "Case ann Set rate to 0.3. The estimated" in said
    assert "Known before deciding" not in said
    assert "from 0.7 to" not in said
    assert "left at" not in said
    asked = shown(material(folder, rows=True)).said
    assert "Lower rate from 0.7 to 0.3. Known before deciding: score 0.25." in asked
    assert "held out" not in asked
