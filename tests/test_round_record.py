"""The line that a run records of a round."""

import json
import math
from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.decision import Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.sensitivity import Sensitivity
from rehearsal_torch.data.table import Table
from rehearsal_torch.round_record import Round, answered, decision_of
from rehearsal_torch.spaces.box import Alteration


def test_a_rounds_line_holds_its_reward(causal_answer):
    one_case, decision, answer = causal_answer
    text = Round(0, one_case, decision, None, {"expected": 1.0}, answer, None, 2.5).line()
    assert '"reward": 2.5' in text


def test_what_would_overturn_a_decision_is_recorded_and_lines_without_it_are_read(causal_answer):
    one_case, decision, _ = causal_answer
    weighed = replace(decision, sensitivity=Sensitivity(math.inf, "interval", 1.7, "age"))
    line = json.loads(Round(0, one_case, weighed, None, {}).line())
    assert line["sensitivity"] == {"tipping": None, "basis": "interval", "yardstick": 1.7, "covariate": "age"}
    assert decision_of(line).sensitivity == weighed.sensitivity
    before = json.loads(Round(0, one_case, decision, None, {}).line())
    assert "sensitivity" not in before
    assert decision_of(before).sensitivity is None


def test_all_parts_of_a_decision_are_read_as_they_were_written(causal_answer):
    one_case, decision, _ = causal_answer
    whole = replace(
        decision,
        value=math.nan,
        estimate=Estimate(0.7, "chance", 0.6, 0.8, 0.95),
        baseline=Estimate(0.4, "chance"),
        unchanged=Estimate(0.5, "chance", 0.45, 0.55, 0.9),
        gain=Estimate(0.2, "difference", -0.1, 0.5, 0.95),
        cost=3.5,
        worth=200.0,
        findings=(Finding("note", "few rows"),),
        reason=Finding("note", "why"),
        trace={"search": "test"},
    )
    line = json.loads(Round(0, one_case, whole, None, {}).line())
    assert line["value"] is None
    found = decision_of(line)
    assert math.isnan(found.value)
    for name in ("estimate", "baseline", "unchanged", "gain", "cost", "worth", "findings", "reason", "trace"):
        assert getattr(found, name) == getattr(whole, name)
    assert found.alteration == whole.alteration
    assert found.recommendation == whole.recommendation
    assert decision_of(json.loads(Round(0, one_case, decision, None, {}).line())).value == 1.0


def test_values_that_are_points_are_read_a_column_each(causal_answer):
    one_case, decision, _ = causal_answer
    points = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=torch.float64)
    several = replace(decision, alteration=Alteration(("a", "b"), points), recommendation=None)
    found = decision_of(json.loads(Round(0, one_case, several, None, {}).line()))
    assert found.alteration.names == ("a", "b")
    assert found.alteration.values.tolist() == points.tolist()


def test_an_answer_is_read_with_the_cells_that_were_set(causal_answer):
    one_case, decision, answer = causal_answer
    two = Table(("a", "Y"), torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64), torch.eye(2).bool())
    line = json.loads(Round(0, one_case, decision, None, {}, two, True).line())
    assert (line["success"], "reward" in line) == (True, False)
    found = answered(line)
    assert (found.names, found.values.tolist(), found.altered.tolist()) == (
        two.names,
        two.values.tolist(),
        [[True, False], [False, True]],
    )
    plain = answered(json.loads(Round(0, one_case, decision, None, {}, answer).line()))
    assert plain.altered.tolist() == [[False, False]]


def test_certificates_and_trajectories_stand_in_a_line_where_there_are_any(causal_answer):
    one_case, decision, _ = causal_answer
    bare = json.loads(Round(0, one_case, decision, None, {}).line())
    assert not {"certificate", "trajectory", "success", "answer"} & set(bare)
    whole = Round(0, one_case, decision, {"lower": 0.5}, {"regret": math.inf}, trajectory={"horizon": 4})
    line = json.loads(whole.line())
    assert line["certificate"] == {"lower": 0.5}
    assert line["trajectory"] == {"horizon": 4}
    assert line["score"] == {"regret": None}


@pytest.fixture
def causal_answer():
    from rehearsal_torch.data.decision import Decision, RehearsalCase

    keep = Alteration(("a",), torch.tensor([0.5], dtype=torch.float64))
    decision = Decision(keep, 1.0, recommendation=keep)
    return (
        RehearsalCase("0", {}, {"a": (0.0, 1.0)}),
        decision,
        Table.observed(("a", "Y"), torch.ones(1, 2, dtype=torch.float64)),
    )
