"""The line that a run records of a round."""

import json
import math
from dataclasses import replace

import pytest

from rehearsal_torch.data.sensitivity import Sensitivity
from rehearsal_torch.round_line import Round, decision_of


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


@pytest.fixture
def causal_answer():
    import torch

    from rehearsal_torch.data.decision import Decision, RehearsalCase
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.spaces.box import Alteration

    keep = Alteration(("a",), torch.tensor([0.5], dtype=torch.float64))
    decision = Decision(keep, 1.0, recommendation=keep)
    return (
        RehearsalCase("0", {}, {"a": (0.0, 1.0)}),
        decision,
        Table.observed(("a", "Y"), torch.ones(1, 2, dtype=torch.float64)),
    )
