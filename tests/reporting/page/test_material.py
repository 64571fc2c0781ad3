"""What a page is made of, and what becomes of values of another form."""

import math

import pytest

from rehearsal_torch.claims.present_values import leaving
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.reporting.page.cautions import cautions
from rehearsal_torch.reporting.page.material import (
    finite,
    float_of,
    listed,
    mapping,
    material,
    shown,
    without_values,
)
from rehearsal_torch.reporting.page.run_page import page
from rehearsal_torch.reporting.page.why import why
from rehearsal_torch.surrogates.rehearsal_surrogate import Overlap
from tests.toys import recorded_runs
from tests.toys.linear_truth import chain


def test_a_folder_is_read_whole(tmp_path):
    found = material(recorded_runs.alterations(tmp_path), cases=1, ended=False)
    assert (found.alterations, found.trials, found.sequences) == (True, False, False)
    assert found.card["rows"] == 400
    assert found.record["commit"] == "0123abcd"
    assert found.status["state"] == "ok"
    assert [one["identity"] for one in found.shown] == ["ann"]
    assert found.nouns == ("case", "cases")
    assert material(tmp_path, ended=True).status == {}


def test_of_trials_the_last_decision_alone_is_shown(tmp_path):
    found = material(recorded_runs.trials(tmp_path))
    assert found.trials
    assert [one["index"] for one in found.shown] == [2]


def test_episodes_are_known_by_their_trajectories(sepsis_run):
    found = material(sepsis_run)
    assert (found.sequences, found.words.variable) == (True, "SOFA")
    assert found.nouns == ("episode", "episodes")


def test_a_damaged_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        material(tmp_path)
    recorded_runs.alterations(tmp_path)
    (tmp_path / "data.yaml").write_text("a: [1")
    with pytest.raises(PlainFileError, match=r"data\.yaml"):
        material(tmp_path)


def test_values_of_another_form_are_left_out():
    assert mapping([1]) == {} == mapping(None)
    assert mapping({1: 2}) == {"1": 2}
    assert listed("ab") == [] == listed({"a": 1})
    assert [finite(each) for each in (True, 10**400)] == [None, None]
    assert [finite(each) for each in (0.5, 2, "2", [1], math.inf, None)] == [0.5, 2.0, None, None, None, None]
    assert float_of(10**400) == math.inf
    assert float_of(-(10**400)) == -math.inf


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.30370574, "0.3037"),
        (12345.678912, "12345.679"),
        (3000, "3000"),
        (10**400, "inf"),
        (True, "yes"),
        (None, "none"),
        ([], "none"),
        ({}, "none"),
        ([0.0, "b"], "0, b"),
        ({"a": 1, "b": 0.25}, "a 1, b 0.25"),
        ({"a": [1, 2], "b": 3}, "a: 1, 2; b: 3"),
        ("<b>", "<b>"),
    ],
)
def test_values_in_words(value, words):
    assert shown(value) == words


def test_cases_are_held_out_rows_where_as_many_were_kept_aside(tmp_path):
    card = recorded_runs.CARD | {"kept_aside": 2, "cases": 2}
    assert material(recorded_runs.alterations(tmp_path / "held", card=card)).withholds
    assert not material(tmp_path / "held", rows=True).withholds
    given = recorded_runs.CARD | {"kept_aside": 0, "cases": 2}
    assert not material(recorded_runs.alterations(tmp_path / "given", card=given)).withholds
    assert not material(recorded_runs.trials(tmp_path / "trials")).withholds


BETWEEN = "; the observations lie between 18 and 42"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"bmi is 51.25{BETWEEN}", f"bmi is beyond the rows{BETWEEN}"),
        (f"what it is is -5e-07{BETWEEN}", f"what it is is beyond the rows{BETWEEN}"),
        (f"bmi is set to 51{BETWEEN}", f"bmi is set to 51{BETWEEN}"),
        ("rate is far out", "rate is far out"),
        ("no better than leaving bmi at 31 and bp at 90.5 (71.0 %)",
         "no better than leaving bmi as it is and bp as it is (71.0 %)"),
        ("the present value of bmi (31) is not used", "the present value of bmi is not used"),
        ("leaving smoker at not yet", "leaving smoker as it is"),
        ("setting bmi at 310, bp at 90.55 or hbp at 90.5", "setting bmi at 310, bp at 90.55 or hbp at 90.5"),
    ],
)  # fmt: skip
def test_a_sentence_keeps_all_but_the_values_of_the_case(text, left):
    one = {"present": {"bmi": 31.0, "bp": 90.5, "smoker": "not yet"}}
    one["findings"] = [{"kind": "range", "text": text, "numbers": {"value": 51.25}}]
    assert without_values(one) == {"findings": [{"kind": "range", "text": left}]}


def test_the_sentences_are_those_that_decisions_have():
    found = chain()
    overlap = Overlap(found.task, (found.task.graph,))
    overlap.solve(*overlap.examples(found.table(60)))
    (beyond,) = overlap.outside(found.task.context[:1], [1e4])
    assert "10000" in beyond.text
    assert "10000" not in str(without_values({"findings": [beyond.to_dict()]}))
    case = RehearsalCase("0", {}, {"x": (0.0, 9.0)}, present={"x": 1.23456})
    text = f"not told apart from {leaving(case, ['x'])}: so"
    one = {"present": dict(case.present), "findings": [Finding("note", text).to_dict()]}
    assert without_values(one) == {
        "findings": [{"kind": "note", "text": "not told apart from leaving x as it is: so"}]
    }


def test_the_record_stays_and_values_that_are_no_numbers_are_left_out():
    one = {
        "present": {"x": 10**400, "y": [1], "z": 2},
        "given": {"c": 1},
        "reason": {"kind": "no_gain", "text": "x at 3, z at 2"},
    }
    before = dict(one)
    assert without_values(one) == {"reason": {"kind": "no_gain", "text": "x at 3, z as it is"}}
    assert one == before
    assert without_values({"present": "edited", "index": 3}) == {"index": 3}


def test_no_part_of_a_page_states_the_value_of_a_held_out_row_unless_rows_are_asked_for(tmp_path):
    held = {"score": {"desired_no_action": 1.0}, "given": {"score": 7.125}, "present": {"rate": 3.375}}
    outside = "score is 7.125; the observations lie between 0 and 1"
    lines = [
        recorded_runs.recommended() | held | {"findings": [{"kind": "range", "text": outside}]},
        recorded_runs.refused()
        | held
        | {"reason": {"kind": "no_gain", "text": "no better than leaving rate at 3.375 (20 %)"}},
    ]
    folder = recorded_runs.alterations(tmp_path, lines)
    kept = page(material(folder))
    assert "7.125" not in kept
    assert "3.375" not in kept
    said = "score is beyond the rows; the observations lie between 0 and 1"
    assert kept.count(said) == 2, "with the case, and under all warnings"
    assert said in cautions(material(folder))
    assert "no better than leaving rate as it is (20 %)" in why(material(folder))
    asked = page(material(folder, rows=True))
    assert asked.count(outside) == 2
    assert "leaving rate at 3.375 (20 %)" in asked


def test_cases_that_were_given_are_told_with_their_values(tmp_path):
    outside = "score is 7.125; the observations lie between 0 and 1"
    line = recorded_runs.recommended() | {
        "given": {"score": 7.125},
        "findings": [{"kind": "range", "text": outside}],
    }
    found = material(recorded_runs.alterations(tmp_path, [line]))
    assert found.decisions is found.run.decisions
    assert page(found).count(outside) == 2
