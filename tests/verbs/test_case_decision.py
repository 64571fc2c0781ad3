"""One decision of a list, by itself."""

import pytest

from rehearsal_torch.data.decision import Decision
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


def test_its_frame_is_the_row_of_the_list():
    one, other = Decisions([NOTHING, NOTHING])
    assert [each.to_frame()["case"].item() for each in (one, other)] == ["1", "2"]
    assert one.to_frame("polars").shape[0] == 1
    assert "nothing is better" in one._repr_html_()
