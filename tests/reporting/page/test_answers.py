"""The answers, case by case."""

from rehearsal_torch.reporting.page.answers import answers, verdicts
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(of):
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{answers(of)}</html>')


def test_each_case_has_a_box_with_its_answer(tmp_path):
    page = shown(material(recorded_runs.alterations(tmp_path)))
    assert page.faults == []
    boxes = [found["class"] for name, found in page.tags if found.get("class", "").startswith("case")]
    assert boxes == ["case", "case refused"]
    for words in (
        "Case ann Set rate to 0.3. Known before deciding: score 0.25.",
        "Warning: claim: rate is far out.",
        "Case bob Refused",
        "Why: no support: only 0 rows are near.",
    ):
        assert words in page.said


def test_further_cases_are_counted(tmp_path):
    page = shown(material(recorded_runs.alterations(tmp_path), cases=1))
    assert "Case bob" not in page.said
    assert "1 further case of 2 in decisions.jsonl and table.csv." in page.said


def test_decisions_of_no_known_kind_have_their_value(plain_run):
    page = shown(material(plain_run))
    assert "Case 1 Set price to 1. Value of the objective: 1." in page.said
    assert "Case 0 Refused" in page.said


def test_trials_and_episodes_have_boxes_of_their_own(tmp_path, sepsis_run):
    assert "Recommendation after 3 decisions" in shown(material(recorded_runs.trials(tmp_path))).said
    assert "Episode stay-4" in shown(material(sepsis_run)).said


def test_verdicts_count_the_answers():
    kinds = ["recommended", "refused", "refused", "no_action"]
    assert (
        verdicts([{"status": kind} for kind in kinds])
        == "1 with a recommendation, 1 without action, 2 refused"
    )
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
