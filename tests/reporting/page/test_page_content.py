"""What a page is made of, and what becomes of values of another form."""

import math

import pytest

from rehearsal_torch.claims.improvement_test import leaving
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.reporting.page.page_content import (
    finite,
    float_of,
    listed,
    mapping,
    material,
    shown,
    without_values,
)
from rehearsal_torch.reporting.page.run_page import page
from rehearsal_torch.surrogates.rehearsal_surrogate import Overlap
from tests.toys import recorded_runs
from tests.toys.linear_truth import chain


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


def test_a_sentence_keeps_all_but_the_values_of_the_case():
    found = chain()
    overlap = Overlap(found.task, (found.task.graph,))
    overlap.solve(*overlap.examples(found.table(60)))
    (beyond,) = overlap.outside(found.task.context[:1], [1e4])
    assert "10000" in beyond.text
    (withheld,) = without_values({"findings": [beyond.to_dict()]})["findings"]
    name = found.task.context[0]
    assert withheld["text"].startswith(f"{name} is beyond the rows; the observations lie between ")
    assert "10000" not in str(withheld)
    case = RehearsalCase("0", {}, {"x": (0.0, 9.0)}, present={"x": 1.23456})
    compared = Finding.comparing("gain", "not told apart from {}: so", *leaving(case, ["x"]))
    one = {"present": dict(case.present), "findings": [compared.to_dict()]}
    assert one["findings"][0]["text"] == "not told apart from leaving x at 1.235: so"
    assert without_values(one) == {
        "findings": [{"kind": "gain", "text": "not told apart from leaving x as it is: so"}]
    }


def test_the_record_stays_and_what_states_no_value_is_told():
    reason = {"kind": "no_gain", "text": "x at 3", "general": "x as it is", "numbers": {"x": 3.0}}
    one = {"present": {"x": 3.0}, "given": {"c": 1}, "reason": reason}
    before = dict(one)
    assert without_values(one) == {"reason": {"kind": "no_gain", "text": "x as it is"}}
    assert one == before
    assert without_values({"findings": [{"kind": "note", "text": "so"}], "index": 3}) == {
        "findings": [{"kind": "note", "text": "so"}],
        "index": 3,
    }


def test_no_part_of_a_page_states_the_value_of_a_held_out_row_unless_rows_are_asked_for(tmp_path):
    held = {"score": {"desired_no_action": 1.0}, "given": {"score": 7.125}, "present": {"rate": 3.375}}
    between = "; the observations lie between 0 and 1"
    outside = Finding("range", f"score is 7.125{between}", general=f"score is beyond the rows{between}")
    leaving = "leaving rate at 3.375", "leaving rate as it is"
    against = Finding.comparing("no_gain", "no better than {} (20 %)", *leaving)
    lines = [
        recorded_runs.recommended() | held | {"findings": [outside.to_dict()]},
        recorded_runs.refused() | held | {"reason": against.to_dict()},
    ]
    folder = recorded_runs.alterations(tmp_path, lines)
    kept = page(material(folder))
    assert "7.125" not in kept
    assert "3.375" not in kept
    said = "score is beyond the rows; the observations lie between 0 and 1"
    assert kept.lower().count(said) == 3, "in place of the number, with the case, and among the findings"
    assert "no better than leaving rate as it is (20 %)" in kept
    asked = page(material(folder, rows=True))
    assert asked.lower().count(outside.text) == 3
    assert "leaving rate at 3.375 (20 %)" in asked


def test_cases_that_were_given_are_told_with_their_values(tmp_path):
    outside = "score is 7.125; the observations lie between 0 and 1"
    line = recorded_runs.recommended() | {
        "given": {"score": 7.125},
        "findings": [{"kind": "range", "text": outside}],
    }
    found = material(recorded_runs.alterations(tmp_path, [line]))
    assert found.decisions is found.run.decisions
    assert page(found).lower().count(outside) == 4
