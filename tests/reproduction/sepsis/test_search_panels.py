"""Searches along axes: efficiency and improvement."""

import pytest

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.style import drawing, save
from reproduction.sepsis.episode_rows import Point
from reproduction.sepsis.search_panels import Axis, efficiency, improvement
from tests.toys.drawn import texts


def point(x, mean, proven=1.0):
    interval = Interval(mean, 0.9 * mean, 1.1 * mean, 5)
    return Point(x, interval, interval, interval, proven)


def test_lower_bounds_are_drawn_open_and_say_how_much_is_proven(tmp_path):
    lines = {"A*": [point(1, 1.2), point(2, 1.4, 0.75)], "other": [point(1, 1.1), point(2, 1.1)]}
    with drawing():
        figure = efficiency([Axis("k", lines)])
        shown = texts(save(figure, tmp_path, "x")[1])
    assert shown.count("75% proven") == 2
    assert "Effective branching factor" in shown
    assert "Runtime (s an episode)" in shown
    faces = [line.get_markerfacecolor() for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    assert faces == ["white"]


def test_improvements_are_percentages_against_k():
    with drawing():
        (axes,) = improvement(
            {"A*": [point(1, 0.02), point(2, 0.04)], "greedy": [point(1, 0.01), point(3, 0.03)]}
        ).axes
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["A*", "greedy"]
    drawn = [line.get_ydata().tolist() for line in axes.lines if len(line.get_xdata()) == 2]
    assert any(ys == pytest.approx([2.0, 4.0]) for ys in drawn)
    assert any(ys == pytest.approx([1.0, 3.0]) for ys in drawn)
    assert axes.get_xlabel() == "Changed actions at most, k"
    assert axes.get_ylabel() == "Average counterfactual improvement (%)"
