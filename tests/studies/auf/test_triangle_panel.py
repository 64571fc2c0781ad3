import numpy as np
import pytest

from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.auf.triangle_panel import BASE, STD_X, STD_Y, TOP, best, draw, success


def test_the_papers_two_probabilities():
    assert success(0.0) == pytest.approx(0.577, abs=5e-4)
    assert success(best()) == pytest.approx(0.709, abs=5e-4)
    assert BASE < best() < 0.0


@pytest.mark.parametrize("height", [0.0, -0.15, 0.2])
def test_quadrature_agrees_with_simulation(height):
    random = np.random.default_rng(0)
    x, y = STD_X * random.standard_normal(400_000), height + STD_Y * random.standard_normal(400_000)
    # The triangle's half width at height y.
    inside = (y >= BASE) & (np.abs(x) <= (TOP - y) / np.sqrt(3))
    assert success(height) == pytest.approx(inside.mean(), abs=4 * 0.5 / 400_000**0.5)


def test_both_means_are_drawn_with_their_probabilities():
    with drawing():
        (axes,) = draw().axes
    centre, other = axes.lines
    assert (list(centre.get_ydata()), list(other.get_ydata())) == ([0.0], [best()])
    assert centre.get_label() == "mean at the centroid: 0.577"
    assert other.get_label() == "best mean: 0.709"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("First outcome (sides)", "Second outcome (sides)")
