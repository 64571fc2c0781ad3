"""Trials: curves of the best so far, averages and regret."""

import math

import numpy as np
import pytest

from rehearsal_torch.reporting.figure_style import drawing
from rehearsal_torch.reporting.figures import round_figures
from rehearsal_torch.reporting.figures.round_figures import draw_online, mean_of_repeats
from tests.toys.online_rows import bounded
from tests.toys.online_rows import rows as online_rows
from tests.toys.trial_lines import rows


def test_an_average_ends_where_the_shortest_seed_does():
    number, means, errors = round_figures.mean_of_seeds(
        [*rows(), *rows(seed=1)[:2]], "expected", running=True
    )
    assert number.tolist() == [1, 2]
    assert means.tolist() == [2.0, 1.25]
    assert errors.tolist() == [0.0, 0.0]


def test_figures_show_every_method_beside_the_optimum():
    with drawing():
        figure = round_figures.draw_trials({"p": {"m": rows(), "n": rows(method="n", seed=1)}})
    best, average, regret = figure.axes
    assert [each.get_label() for each in best.lines] == ["m", "n", "best possible"]
    assert np.allclose(best.lines[-1].get_ydata(), 10.0)
    assert regret.get_yscale() == "log"
    assert np.allclose(regret.lines[0].get_ydata(), [7.0, 4.0, 2.0])
    assert len(average.lines) == 3


def test_curves_are_means_with_deviations():
    rounds, means, stds = mean_of_repeats(online_rows(), "p_true")
    assert rounds.tolist() == list(range(1, 31))
    assert means[-1] == pytest.approx(0.7 - 0.4 / 30 + 0.01)
    np.testing.assert_allclose(stds, 0.01)
    assert mean_of_repeats(online_rows(), "success", summed=True)[1][-1] == 15
    assert (
        mean_of_repeats(
            [*online_rows(1, 30), *({**row, "repeat": 1} for row in online_rows(1, 12))], "p_true"
        )[0][-1]
        == 12
    ), "as far as all repeats go"


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
