"""All cases together come first; and a model that predicts nothing, by which nothing is sure."""

import json

import numpy as np
import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.reporting.decision_frame import overall_of
from rehearsal_torch.reporting.page.sentences import overall
from rehearsal_torch.round_record import Round
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeScore
from tests.surrogates.outcome.test_average_effects import rows

CASES = [{"x": each} for each in (-1.0, 0.0, 0.5, 1.0)]
TASK = {
    "graph": {"parents": {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}},
    **{"context": ["x"], "box": {"a": {"values": [0, 1]}}, "region": {"y": [0, None]}},
}
SMALL = {
    **{"surrogate.members": 2, "surrogate.blocks": 8, "surrogate.functions": 12, "surrogate.frequencies": 60},
    **{"surrogate.evidence_rows": 120, "surrogate.iterations": 15},
}


def decided(columns, **rest):
    return rt.rehearse(pd.DataFrame(columns), TASK, CASES, **rest, **SMALL)


@pytest.fixture(scope="module")
def found():
    return decided(rows(0, 400))


def test_all_cases_together_come_first(found):
    whole = found.overall
    assert whole.cases == 4
    assert whole.counts["do"] == sum(each.status == "do" for each in found)
    gains = [0.0 if each.alteration is None else each.gain.point for each in found]
    assert whole.gain.point == pytest.approx(np.mean(gains), abs=1e-5)
    assert whole.before == pytest.approx(np.mean([each.before.point for each in found]))
    assert str(found).splitlines()[0] == found.summary()
    assert found.summary().startswith("In all 4 cases together (")


def test_a_recorded_run_has_the_answer_of_its_decisions(found, tmp_path):
    folder = RunFolder(tmp_path)
    rounds = [
        Round(index, case, each, None, {}, kind="rehearse")
        for index, (case, each) in enumerate(zip(found.cases, found, strict=True))
    ]
    assert len(list(folder.record(iter(rounds)))) == 4
    lines = folder.decisions()
    read = overall_of(lines)
    assert read.counts == found.overall.counts
    assert read.gain.lower == pytest.approx(found.overall.gain.lower, abs=1e-4)
    assert overall(lines, found.wanted) == found.summary()


def test_present_values_are_what_all_cases_are_compared_with():
    cases = [{**each, "a": 0} for each in CASES]
    found = rt.rehearse(pd.DataFrame(rows(0, 400)), TASK, cases, **SMALL)
    gains = [0.0 if each.alteration is None else each.gain.point for each in found]
    assert all(each.unchanged is not None for each in found if each.alteration is not None)
    assert found.overall.gain.point == pytest.approx(np.mean(gains), abs=1e-5)


def test_actions_have_mean_effects_over_the_rows(found, tmp_path):
    effects = found.model.average()
    assert [str(each).partition(":")[0] for each in effects] == [
        "a 0 against no action",
        "a 1 against no action",
        "a 1 against a 0",
    ]
    assert all(each.check is not None and not each.contradicted for each in effects)
    assert list(map(str, rt.load(found.model.save(tmp_path / "model")).average())) == list(map(str, effects))


def test_nothing_is_sure_by_a_model_that_predicts_nothing(monkeypatch):
    columns = rows(0, 400)
    columns["y"] = np.random.default_rng(8).normal(size=400)
    # Every other such table is predicted a little better than by a constant.
    monkeypatch.setattr(OutcomeScore, "beats_constant", False)
    found = decided(columns)
    for each in found:
        assert each.status == "leave"
        assert [finding.kind for finding in each.findings].count("score") == 1
    assert {each.reason.kind for each in found if each.undecided} == {"score"}
    assert found.summary().startswith("The model predicts rows that were left out no better than a constant")
    assert found.overall is None or found.overall.status == "may"
    assert not any(each.told for each in found.model.average())
    json.dumps([each.to_dict() for each in found])
