import pytest

from rehearsal_torch.reporting.decision_frame import decision_frame
from rehearsal_torch.reporting.decision_plot import CASES, NAMED, draw, in_panels
from rehearsal_torch.reporting.style import drawing, panels
from tests.reporting.test_decision_frame import ACTED, NONE, OF


def drawn(lines, of=OF):
    with drawing():
        figure, ((axes,),) = panels()
        draw(axes, decision_frame(lines), of)
        figure.canvas.draw()
    return axes


def test_claims_intervals_and_no_action_stand_at_their_cases():
    refused = NONE | {"reason": {"kind": "no_path", "text": "no path"}, "identity": "$e$"}
    axes = drawn([NONE, ACTED, refused])
    lines = {each.get_label(): each for each in axes.lines}
    assert lines["after the alteration"].get_xydata().tolist() == [[1, 0.8]]
    assert lines["no action"].get_xydata().tolist() == [[0, 0.4], [1, 0.5], [2, 0.4]]
    assert lines["refused"].get_xydata().tolist() == [[2, 0.4]]
    (bars,) = axes.collections
    assert [each.tolist() for each in bars.get_segments()] == [[[1, 0.6], [1, 0.9]]]
    assert bars.get_label() == "95% interval"
    assert [each.get_text() for each in axes.get_xticklabels()] == ["bob", "ann", r"\$e\$"]
    assert axes.get_ylabel() == "Claimed probability of a\ndesired outcome"
    assert axes.get_ylim() == pytest.approx((-0.02, 1.02))


def test_many_cases_are_not_named_and_returns_have_an_axis_of_their_own():
    assert "ann" not in [each.get_text() for each in drawn([ACTED] * (NAMED + 1)).get_xticklabels()]
    axes = drawn([ACTED | {"estimate": {"point": -30.0, "of": "return"}}], "return")
    assert axes.get_ylim()[0] < -30
    assert not axes.collections


def test_present_values_stand_where_they_are_known():
    against = ACTED | {"present": {"dose": 1.0}, "unchanged": {"point": 0.45, "of": OF}}
    lines = {each.get_label(): each for each in drawn([NONE, against]).lines}
    assert lines["no action"].get_xydata().tolist() == [[0, 0.4]]
    assert lines["present values"].get_xydata().tolist() == [[1, 0.45]]


def test_a_case_outside_the_data_is_shaded_and_has_no_mark():
    far = ACTED | {"identity": "far", "findings": [{"kind": "support", "text": "few rows are like this"}]}
    axes = drawn([ACTED, far])
    assert {tuple(each) for line in axes.lines for each in line.get_xydata()} == {(0, 0.8), (0, 0.5)}
    (shaded,) = [each for each in axes.patches if each.get_label() == "outside the data"]
    assert (shaded.get_x(), shaded.get_width()) == (0.5, 1.0)


def test_long_names_leave_the_panels_their_height_and_the_legend_covers_nothing():
    lines = [ACTED | {"identity": f"customer number {place} of the branch"} for place in range(24)]
    with drawing():
        figure = in_panels(decision_frame(lines), OF)
        figure.draw_without_rendering()
    (legend,) = figure.legends
    for axes in figure.axes:
        assert axes.get_legend() is None
        assert axes.bbox.height / figure.dpi > 2.2
        label = axes.yaxis.label.get_window_extent()
        assert label.y0 >= 0
        assert label.y1 <= figure.bbox.height
        assert not legend.get_window_extent().overlaps(axes.bbox)
    (axes,) = (drawn([ACTED] * 3),)
    assert not axes.get_legend().get_window_extent().overlaps(axes.bbox)


@pytest.mark.parametrize(
    ("count", "each"), [(1, [1]), (CASES, [14]), (15, [8, 7]), (100, [13] * 4 + [12] * 4)]
)
def test_many_cases_stand_in_panels_with_a_common_scale_and_all_are_named(count, each):
    lines = [
        ACTED | {"identity": str(place), "estimate": {"point": float(place), "of": "return"}}
        for place in range(count)
    ]
    with drawing():
        figure = in_panels(decision_frame(lines), "return")
        figure.draw_without_rendering()
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [len(axes.get_xticklabels()) for axes in shown] == each
    names = [text.get_text() for axes in shown for text in axes.get_xticklabels()]
    assert names == [str(place) for place in range(count)]
    assert len({axes.get_ylim() for axes in shown}) == 1
    assert shown[0].get_ylim()[1] > count - 1
    assert figure.get_figwidth() == 5.2 * min(len(each), 2)
