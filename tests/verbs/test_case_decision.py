"""One decision of a list, by itself."""

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.verbs.case_decision import CaseDecision
from rehearsal_torch.verbs.decisions import Decisions

NOTHING = Decision(None, 0.0, status="no_action", reason="nothing is better")


def test_it_is_the_decision_with_a_name():
    (one,) = Decisions([NOTHING])
    assert isinstance(one, CaseDecision)
    assert one == NOTHING
    assert one != "nothing"
    assert one.sentence() == Decisions([NOTHING]).sentences()[0]
    assert str(one).splitlines()[0] == one.sentence()
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_equal_decisions_may_have_taken_different_times():
    made = [
        Decision(Alteration(("a",), torch.tensor([value])), 0.5, seconds=seconds)
        for value, seconds in ((1.0, 0.1), (1.0, 0.2), (2.0, 0.1))
    ]
    one, again, other = Decisions(made)
    assert one == again == made[0]
    assert one != other
    assert made[0] != made[2]


def test_its_sentence_has_units():
    (one,) = Decisions(
        [Decision(Alteration(("rate",), torch.tensor([5.4])), 0.5)], wanted="", units={"rate": "%"}
    )
    assert one.units == {"rate": "%"}
    assert one.sentence().startswith("Case 1: Set rate to 5.4 %.")
