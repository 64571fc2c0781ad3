"""Trials: curves of the best so far, averages and regret."""

import math

import numpy as np

from rehearsal_torch.reporting.figure_style import drawing
from rehearsal_torch.reporting.figures import round_figures
from rehearsal_torch.reporting.figures.round_figures import draw_online
from tests.toys.online_rows import bounded
from tests.toys.online_rows import rows as online_rows
from tests.toys.trial_lines import rows


def test_figures_show_every_method_beside_the_optimum():
    with drawing():
        figure = round_figures.draw_trials({"p": {"m": rows(), "n": rows(method="n", seed=1)}})
    best, average, regret = figure.axes
    assert [each.get_label() for each in best.lines] == ["m", "n", "best possible"]
    assert np.allclose(best.lines[-1].get_ydata(), 10.0)
    assert regret.get_yscale() == "log"
    assert np.allclose(regret.lines[0].get_ydata(), [7.0, 4.0, 2.0])
    assert len(average.lines) == 3


def test_a_figure_has_a_line_of_panels_a_world():
    without = [
        {**row, "information": math.nan, "lower": math.nan, "upper": math.nan}
        for row in online_rows(method="other")
    ]
    with drawing():
        figure = draw_online({"w": {"m": online_rows(), "other": without}, "v": {"other": without}})
    seen = [axes.get_visible() for axes in figure.axes]
    assert seen == [True, True, True, True, True, True, False, False], "nothing is drawn of what nobody told"
    assert [len(axes.lines) for axes in figure.axes[:4]] == [3, 3, 1, 1]
    assert figure.axes[3].get_title() == "Bounds, m"


def test_the_last_panel_has_both_bounds_and_the_truth():
    with drawing():
        one = draw_online({"w": {"m": online_rows()}}).axes[3]
        both = draw_online({"w": {"m": bounded(online_rows(bound=0.05), reach=0.2)}}).axes[3]
    assert one.get_legend_handles_labels()[1] == ["bound", "truth"]
    assert both.get_legend_handles_labels()[1] == [
        "bound of the truth",
        "bound of the posterior mean",
        "truth",
    ]
    wide, narrow = (each.get_paths()[0].get_extents().height for each in both.collections)
    assert wide > narrow
