import pytest

from rehearsal_torch.reporting.decision_frame import decision_frame
from rehearsal_torch.reporting.decision_plot import NAMED, draw
from rehearsal_torch.reporting.style import drawing, panels
from tests.reporting.test_decision_frame import ACTED, NONE, OF


def drawn(lines, of=OF):
    with drawing():
        figure, ((axes,),) = panels()
        draw(axes, decision_frame(lines), of)
        figure.canvas.draw()
    return axes


def test_claims_intervals_and_no_action_stand_at_their_cases():
    refused = NONE | {"status": "refused", "identity": "$e$"}
    axes = drawn([NONE, ACTED, refused])
    lines = {each.get_label(): each for each in axes.lines}
    assert lines["after the alteration"].get_xydata().tolist() == [[1, 0.8]]
    assert lines["no action"].get_xydata().tolist() == [[0, 0.4], [1, 0.5], [2, 0.4]]
    assert lines["refused"].get_xydata().tolist() == [[2, 0.4]]
    (bars,) = axes.collections
    assert [each.tolist() for each in bars.get_segments()] == [[[1, 0.6], [1, 0.9]]]
    assert bars.get_label() == "95% interval"
    assert [each.get_text() for each in axes.get_xticklabels()] == ["bob", "ann", r"\$e\$"]
    assert axes.get_ylabel() == "Claimed probability of a desired outcome"
    assert axes.get_ylim() == pytest.approx((-0.02, 1.02))


def test_many_cases_are_not_named_and_returns_have_an_axis_of_their_own():
    assert "ann" not in [each.get_text() for each in drawn([ACTED] * (NAMED + 1)).get_xticklabels()]
    axes = drawn([ACTED | {"estimate": {"point": -30.0, "of": "return"}}], "return")
    assert axes.get_ylim()[0] < -30
    assert not axes.collections


def test_intervals_of_several_levels_are_not_given_one():
    other = ACTED | {"estimate": ACTED["estimate"] | {"level": 0.8}}
    assert drawn([ACTED, other]).collections[0].get_label() == "interval"
