"""Findings: kinds that programs decide by, and sentences for readers."""

from rehearsal_torch.data.finding import (
    KINDS,
    NOTHING_BETTER,
    OUTSIDE,
    Finding,
    doubted,
    findings_of,
    reason_of,
    texts_of,
    undecided,
)

FAR = Finding("range", "x is 40", {"value": 40.0})


def test_what_reasons_are_told_by_are_kinds():
    assert {*NOTHING_BETTER, *OUTSIDE} <= set(KINDS)


def test_a_recorded_decision_says_what_it_found():
    line = {
        "alteration": None,
        "findings": [FAR.to_dict()],
        "reason": {"kind": "no_path", "text": "no arrow"},
    }
    assert findings_of(line) == (FAR,)
    assert texts_of(line) == ["x is 40"]
    assert reason_of(line) == "no arrow"
    assert undecided(line)
    assert not undecided(line | {"reason": {"kind": "no_gain", "text": "none helps"}})
    assert not undecided(line | {"alteration": {"a": 1.0}})
    assert not undecided({"alteration": None})
    assert reason_of({}) == ""


def test_rows_that_did_not_choose_lift_the_doubt_of_the_score_alone():
    score, hidden = (Finding(kind, "so it is") for kind in ("score", "hidden_cause"))
    assert doubted([score])
    assert not doubted([score], untouched=True)
    assert doubted([score, hidden], untouched=True)
    assert not doubted([Finding("gain", "so it is")])
