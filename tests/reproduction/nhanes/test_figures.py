import numpy as np
import pytest
from matplotlib.patches import Polygon, Rectangle

from rehearsal_torch.reporting.style import drawing
from reproduction.nhanes.figures import correlations, marginals

NAMES = ("kind", "size", "outcome")


def rows(seed):
    stream = np.random.default_rng(seed)
    return np.column_stack(
        [stream.integers(1, 4, 500), stream.lognormal(0, 1, 500), stream.standard_normal(500)]
    )


def test_every_variable_has_a_panel_and_bounds_are_marked():
    with drawing():
        figure = marginals(NAMES, rows(0), rows(1), {"outcome": 0.5})
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == list(NAMES)
    assert [len(axes.lines) for axes in shown] == [0, 0, 1]
    assert shown[2].lines[0].get_xdata()[0] == 0.5
    assert sorted(text.get_text() for text in figure.legends[0].get_texts()) == [
        "desired below",
        "generated",
        "participants",
    ]


def test_histograms_have_the_same_bins_and_area():
    with drawing():
        figure = marginals(NAMES, rows(0), rows(1), {})
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    assert [bar.get_x() for bar in bars] == [0.5, 1.5, 2.5]
    assert sum(bar.get_height() * bar.get_width() for bar in bars) == pytest.approx(1.0)
    outline = next(patch for patch in figure.axes[0].patches if isinstance(patch, Polygon)).get_xy()
    assert {round(x, 6) for x, _ in outline} == {0.5, 1.5, 2.5, 3.5}


def test_the_third_map_is_the_difference():
    real, generated = (np.corrcoef(rows(seed).T) for seed in (0, 1))
    with drawing():
        figure = correlations(NAMES, real, generated)
    images = [axes.images[0].get_array() for axes in figure.axes[:3]]
    np.testing.assert_allclose(images[2], generated - real)
    assert f"{np.abs(generated - real).mean():.4f}" in figure.axes[2].get_title()
