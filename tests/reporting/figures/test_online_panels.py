"""Rounds that learn from each other: curves and panels."""

import math

import numpy as np
import pytest

from rehearsal_torch.reporting.figures.online_panels import by_round, draw
from rehearsal_torch.reporting.style import drawing
from tests.toys.online_rows import bounded, rows


def test_curves_are_means_with_deviations():
    rounds, means, stds = by_round(rows(), "p_true")
    assert rounds.tolist() == list(range(1, 31))
    assert means[-1] == pytest.approx(0.7 - 0.4 / 30 + 0.01)
    np.testing.assert_allclose(stds, 0.01)
    assert by_round(rows(), "success", summed=True)[1][-1] == 15
    assert by_round([*rows(1, 30), *({**row, "repeat": 1} for row in rows(1, 12))], "p_true")[0][-1] == 12, (
        "as far as all repeats go"
    )


def test_a_figure_has_a_line_of_panels_a_world():
    without = [
        {**row, "information": math.nan, "lower": math.nan, "upper": math.nan} for row in rows(method="other")
    ]
    with drawing():
        figure = draw({"w": {"m": rows(), "other": without}, "v": {"other": without}})
    seen = [axes.get_visible() for axes in figure.axes]
    assert seen == [True, True, True, True, True, True, False, False], "nothing is drawn of what nobody told"
    assert [len(axes.lines) for axes in figure.axes[:4]] == [3, 3, 1, 1]
    assert figure.axes[3].get_title() == "Bounds, m"


def test_the_last_panel_has_both_bounds_and_the_truth():
    with drawing():
        one = draw({"w": {"m": rows()}}).axes[3]
        both = draw({"w": {"m": bounded(rows(bound=0.05), reach=0.2)}}).axes[3]
    assert one.get_legend_handles_labels()[1] == ["bound", "truth"]
    assert both.get_legend_handles_labels()[1] == [
        "bound of the truth",
        "bound of the posterior mean",
        "truth",
    ]
    wide, narrow = (each.get_paths()[0].get_extents().height for each in both.collections)
    assert wide > narrow
