import pytest
import torch

from rehearsal_torch.objectives.region_probability.polygon import (
    PolygonProbability,
    edges,
    probability,
    triangle,
    vertices_of,
)

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
NORMALS = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_square_is_the_product_of_two_intervals():
    interval = torch.special.ndtr(number(1.0)) - torch.special.ndtr(number(-1.0))
    found = probability(SQUARE, number([0.0, 0.0], [0.5, 0.0]))
    moved = torch.special.ndtr(number(0.5)) - torch.special.ndtr(number(-1.5))
    torch.testing.assert_close(found, torch.cat([interval**2, interval * moved]), rtol=0, atol=1e-13)


def test_a_triangle_agrees_with_simulation_and_has_the_sign_of_its_legs():
    draws = torch.randn(400_000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x, y = draws.unbind(-1)
    inside = ((x > 0) & (x < 1.5) & (y > 0) & (y < x * 0.8 / 1.5)).double().mean()
    found = triangle(number(1.5), number(0.8))
    assert float(found) == pytest.approx(float(inside), abs=4 * 0.5 / 400_000**0.5)
    assert float(triangle(number(-1.5), number(0.8))) == -float(found)


def test_outward_normals_and_directions():
    normal, direction = edges(SQUARE)
    assert normal.tolist() == [[0, -1], [1, 0], [0, 1], [-1, 0]]
    assert direction.tolist() == [[1, 0], [0, 1], [-1, 0], [0, -1]]
    assert edges(SQUARE[[0, 0, 1, 2]])[0][0].tolist() == [0, 0], "an edge without length"


def test_corners_come_from_half_planes():
    found = vertices_of(NORMALS, number(1.0, 1.0, 1.0, 1.0))
    assert {tuple(corner) for corner in found.tolist()} == {tuple(corner) for corner in SQUARE.tolist()}
    open_above = vertices_of(NORMALS[[0, 1, 3]], number(1.0, 1.0, 1.0))
    assert float(open_above[:, 1].max()) > 30
    with pytest.raises(ValueError, match="has an empty interior"):
        vertices_of(NORMALS, number(-1.0, -1.0, 1.0, 1.0))


@pytest.mark.parametrize("centre", [(0.0, 0.0), (1.2, -0.7), (3.0, 2.0)])
def test_the_logarithm_and_its_slope(centre):
    law, at = PolygonProbability(SQUARE), number(*centre)
    value = law.log_probability(at)
    assert float(value.exp()) == pytest.approx(float(probability(SQUARE, at)), rel=1e-9)
    step = 1e-5 * torch.eye(2, dtype=torch.float64)
    gradient = (law.log_probability(at + step) - law.log_probability(at - step)) / 2e-5
    torch.testing.assert_close(law.expansion(at).gradient, gradient, rtol=1e-5, atol=1e-7)


def test_far_away_the_logarithm_stays_finite():
    # Along the axis the square is the tail of a normal times one interval; far away log P is told to a few
    # hundredths.
    found = PolygonProbability(SQUARE).log_probability(number(40.0, 0.0))
    tail = torch.special.log_ndtr(number(-39.0))
    interval = (torch.special.ndtr(number(1.0)) - torch.special.ndtr(number(-1.0))).log()
    assert float(found) == pytest.approx(float(tail + interval), abs=0.05)


@pytest.mark.parametrize("centre", [(0.0, 0.0), (1.2, -0.7), (3.0, 2.0)])
def test_the_curvature_is_that_of_the_slope(centre):
    law, at = PolygonProbability(SQUARE), number(*centre)
    step = 1e-5 * torch.eye(2, dtype=torch.float64)
    slopes = (law.expansion(at + step).gradient - law.expansion(at - step).gradient) / 2e-5
    torch.testing.assert_close(law.expansion(at).curvature, slopes, rtol=1e-4, atol=1e-6)
