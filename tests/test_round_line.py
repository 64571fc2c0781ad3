"""The line that a run records of a round."""

import pytest

from rehearsal_torch.round_line import Round


def test_a_rounds_line_holds_its_reward(causal_answer):
    one_case, decision, answer = causal_answer
    text = Round(0, one_case, decision, None, {"expected": 1.0}, answer, None, 2.5).line()
    assert '"reward": 2.5' in text


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
