import pytest

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.sepsis.episode_rows import Point
from rehearsal_torch.studies.sepsis.improvement_by_changes import draw


def point(k, improvement, proven=1.0):
    interval = Interval(improvement, 0.5 * improvement, 1.5 * improvement, 5)
    return Point(k, interval, interval, interval, proven)


def test_improvements_are_percentages_against_k():
    with drawing():
        (axes,) = draw(
            {"A*": [point(1, 0.02), point(2, 0.04)], "greedy": [point(1, 0.01), point(3, 0.03)]}
        ).axes
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["A*", "greedy"]
    drawn = [line.get_ydata().tolist() for line in axes.lines if len(line.get_xdata()) == 2]
    assert any(ys == pytest.approx([2.0, 4.0]) for ys in drawn)
    assert any(ys == pytest.approx([1.0, 3.0]) for ys in drawn)
    assert axes.get_xlabel() == "Changed actions at most, k"
    assert axes.get_ylabel() == "Average counterfactual improvement (%)"
