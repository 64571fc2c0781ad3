import math

import pytest
import torch

from rehearsal_torch.objectives.region_probability.polygon import (
    PolygonProbability,
    PolytopeProbability,
    edges,
    probability,
    tail,
    vertices_of,
)
from rehearsal_torch.objectives.region_probability.rectangle import RectangleProbability

SQUARE = torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
NORMALS = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_square_is_the_product_of_two_intervals():
    interval = torch.special.ndtr(number(1.0)) - torch.special.ndtr(number(-1.0))
    found = probability(SQUARE, number([0.0, 0.0], [0.5, 0.0]))
    moved = torch.special.ndtr(number(0.5)) - torch.special.ndtr(number(-1.5))
    torch.testing.assert_close(found, torch.cat([interval**2, interval * moved]), rtol=0, atol=1e-13)


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


LOWER, UPPER = number(-5.0, -4.0), number(3.0, 6.0)
OBLONG = number([-5.0, -4.0], [3.0, -4.0], [3.0, 6.0], [-5.0, 6.0])


def product(at):
    return RectangleProbability(torch.eye(2, dtype=torch.float64), LOWER, UPPER).expansion(at)


def test_near_a_rectangle_value_slope_and_curvature_are_exact():
    at = number([[0.0, 0.0], [2.9, 5.0]], [[4.0, -5.0], [-6.0, 1.0]])
    found, wanted = PolygonProbability(OBLONG).expansion(at), product(at)
    torch.testing.assert_close(found.value, wanted.value, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.gradient, wanted.gradient, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.curvature, wanted.curvature, rtol=0, atol=1e-12)


def test_beyond_every_side_and_corner_of_a_rectangle_the_moments_are_those_of_intervals():
    at = number(
        [9, 1], [-11, 1.5], [-1, 13], [0.5, -10], [9, 12], [-12, 12.5], [-11, -10], [8.5, -9], [30, 0]
    )
    found, wanted = tail(OBLONG, at), product(at)
    torch.testing.assert_close(found.value, wanted.value, rtol=0, atol=1e-3)
    torch.testing.assert_close(found.gradient, wanted.gradient, rtol=0, atol=5e-3)
    torch.testing.assert_close(found.curvature, wanted.curvature, rtol=0, atol=5e-3)
    # Where P is small they are the polygon's, side by side with others where it is not.
    mixed = number([0.0, 0.0], [9.0, 1.0], [2.0, 2.0])
    law, small = PolygonProbability(OBLONG), tail(OBLONG, mixed[1:2])
    every = law.expansion(mixed)
    torch.testing.assert_close(law.log_probability(mixed), product(mixed).value, rtol=0, atol=2e-4)
    assert float(every.value[1]) == float(small.value[0])
    assert torch.equal(every.gradient[1], small.gradient[0])
    assert torch.equal(every.curvature[1], small.curvature[0])
    torch.testing.assert_close(every.curvature[::2], product(mixed[::2]).curvature, rtol=0, atol=1e-12)


def test_a_slanted_triangle_seen_from_far_is_as_likely_as_by_quadrature():
    # Rotated, a triangle keeps its probability, and its moments turn with it.
    corners, at = number([0.0, 0.0], [4.0, 1.0], [1.0, 5.0]), number([-5.0, -3.0], [6.0, 8.0], [8.0, -4.0])
    angle = torch.tensor(0.7, dtype=torch.float64)
    turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
    one, other = tail(corners, at), tail(corners @ turn.mT, at @ turn.mT)
    torch.testing.assert_close(one.value, other.value, rtol=0, atol=1e-9)
    torch.testing.assert_close(one.gradient @ turn.mT, other.gradient, rtol=0, atol=1e-9)
    torch.testing.assert_close(turn @ one.curvature @ turn.mT, other.curvature, rtol=0, atol=1e-9)
    # Along x the integral of phi(x) [Phi(high(x)) - Phi(low(x))], around each point.
    x = torch.linspace(0, 4, 400_001, dtype=torch.float64)[1:-1]
    low, high = x / 4, torch.where(x < 1, 5 * x, 5 - 4 / 3 * (x - 1))
    for value, centre in zip(one.value, at, strict=True):
        density = torch.exp(-((x - centre[0]) ** 2) / 2) / (2 * torch.pi) ** 0.5
        right, left = torch.special.log_ndtr(high - centre[1]), torch.special.log_ndtr(low - centre[1])
        mass = (density * (right.exp() - left.exp())).sum() * (x[1] - x[0])
        assert float(value) == pytest.approx(float(mass.log()), abs=0.05)


def test_corners_are_in_counter_clockwise_order_and_on_their_faces():
    normals, offsets = number([-1.0, 0.2], [0.3, -2.0], [1.0, 1.0]), number(0.5, 0.8, 1.2)
    found = vertices_of(normals, offsets)
    assert len(found) == 3
    slack = offsets - found @ normals.mT
    assert sorted((slack.abs() < 1e-9).sum(-1).tolist()) == [2, 2, 2]
    assert bool((slack >= -1e-9).all())
    (x0, y0), (x1, y1), (x2, y2) = found.tolist()
    assert (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0) > 0


def test_only_open_sides_are_closed_farther_away_where_centres_lie_far():
    tilted = number([1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0])
    small = vertices_of(tilted, number(1e-3, 1e-3, 1e-3, 1e-3))
    assert torch.equal(vertices_of(tilted, number(1e-3, 1e-3, 1e-3, 1e-3), 1e9), small)
    for reach, end in ((0.0, 1e4), (5e3, 1e4), (1e6, 2e6), (1e12, 1e9)):
        assert float(vertices_of(tilted[:2], number(1.0, 1.0), reach).abs().max()) == end
    large = vertices_of(tilted, number(3e4, 3e4, 3e4, 3e4), 1e5)
    assert sorted(map(tuple, large.tolist())) == [(-3e4, 0.0), (0.0, -3e4), (0.0, 3e4), (3e4, 0.0)]
    with pytest.raises(ValueError, match="has an empty interior"):
        vertices_of(tilted, number(-1.0, 1.0, 1.0, -1.0), 1e9)


@pytest.mark.parametrize("distance", [9e4, 1.1e5, 1e6])
def test_very_far_outside_the_logarithm_falls_as_a_parabola(distance):
    law = PolygonProbability(number([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]))
    found = law.expansion(((distance / 2**0.5 + 0.5) * torch.ones(1, 2)).double())
    expected = torch.special.log_ndtr(number(-distance)) + math.log(math.erf(0.5))
    assert float(found.value) == pytest.approx(float(expected), rel=1e-6)
    assert found.gradient.tolist() == [[pytest.approx(-distance / 2**0.5, rel=1e-4)] * 2]


def test_a_face_may_run_through_corners():
    law = PolygonProbability(vertices_of(number([1.0, -1.0]), number(0.0)))
    assert float(law.log_probability(number(0.0, 0.0)).exp()) == pytest.approx(0.5, abs=1e-9)
    square = vertices_of(torch.cat([NORMALS, number([1.0, 1.0])]), number(1.0, 1.0, 1.0, 1.0, 2.0))
    assert float(probability(square, number(0.3, 0.4))) == pytest.approx(
        float(probability(SQUARE, number(0.3, 0.4))), abs=1e-9
    )


FACES = torch.cat([torch.eye(3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64)])
ASKEW = torch.cat([FACES, torch.tensor([[1.0, 1.0, 1.0]], dtype=torch.float64)])


def test_a_cube_is_the_product_of_three_intervals():
    law = PolytopeProbability(FACES, torch.ones(6, dtype=torch.float64))
    centre = number(0.3, -0.4, 0.0)
    exact = (torch.special.ndtr(1 - centre) - torch.special.ndtr(-1 - centre)).prod()
    assert float(law.log_probability(centre).exp()) == pytest.approx(float(exact), rel=5e-3)


def test_a_cut_corner_agrees_with_simulation():
    law = PolytopeProbability(ASKEW, number(1, 1, 1, 1, 1, 1, 0.5))
    draws = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.2
    inside = (draws @ ASKEW.mT <= number(1, 1, 1, 1, 1, 1, 0.5)).all(-1).double().mean()
    found = law.log_probability(number(0.2, 0.2, 0.2)).exp()
    assert float(found) == pytest.approx(float(inside), rel=0.02)


def test_the_slope_is_that_of_finite_differences():
    law, at = PolytopeProbability(ASKEW, number(1, 1, 1, 1, 1, 1, 0.5)), number(0.2, -0.3, 0.1)
    step = 1e-5 * torch.eye(3, dtype=torch.float64)
    gradient = (law.log_probability(at + step) - law.log_probability(at - step)) / 2e-5
    torch.testing.assert_close(law.expansion(at).gradient, gradient, rtol=2e-2, atol=2e-3)


def test_faces_need_not_have_unit_normals_and_the_seed_decides():
    sizes = number(0.25, 1, 2, 4, 8, 16)
    plain = PolytopeProbability(FACES, torch.ones(6, dtype=torch.float64))
    scaled, other = (
        PolytopeProbability(FACES * sizes.unsqueeze(-1), sizes, points=512, seed=seed) for seed in (0, 5)
    )
    at = number(0.5, 0.0, 0.0)
    assert torch.equal(plain.log_probability(at), scaled.log_probability(at)), "512 points of seed 0"
    assert float(other.log_probability(at)) == pytest.approx(float(plain.log_probability(at)), abs=5e-3)
    assert not torch.equal(other.log_probability(at), plain.log_probability(at))


def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match="use RectangleProbability"):
        PolytopeProbability(torch.ones(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    with pytest.raises(ValueError, match="use RectangleProbability"):
        PolytopeProbability(number([1.0], [-1.0], [2.0]), number(1.0, 1.0, 3.0))


def test_a_half_space_is_one_interval_that_is_open():
    law, at = PolytopeProbability(number([1.0, 2.0, -2.0]), number(3.0)), number(0.4, 0.0, -0.1)
    assert float(law.log_probability(at)) == pytest.approx(
        float(torch.special.log_ndtr(number(0.8))), abs=2e-3
    )


def test_slope_and_curvature_are_the_moments_of_the_cut_off_normal():
    sides, at = number(1, 1, 1, 1, 1, 1, 0.5), number(0.2, -0.3, 0.1)
    draws = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    inside = draws[((draws + at) @ ASKEW.mT <= sides).all(-1)]
    found = PolytopeProbability(ASKEW, sides).expansion(at)
    torch.testing.assert_close(found.gradient, inside.mean(0), rtol=0, atol=0.01)
    curvature = inside.mT.cov(correction=0) - torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(found.curvature, curvature, rtol=0, atol=0.01)


def test_inside_and_far_away_a_box_has_the_logarithm_slope_and_curvature_of_its_intervals():
    lower, upper = number(-1.0, -0.5, -2.0), number(1.0, 2.0, 1.5)
    law = PolytopeProbability(FACES, torch.cat([upper, -lower]))
    at = number([[0.2, 0.3, -0.1], [1.5, 0.0, 0.0]], [[3.0, -2.0, 0.5], [5.0, 4.0, -6.0]])
    found = law.expansion(at)
    wanted = RectangleProbability(torch.eye(3, dtype=torch.float64), lower, upper).expansion(at)
    assert torch.equal(found.value, law.log_probability(at))
    torch.testing.assert_close(found.value, wanted.value, rtol=5e-3, atol=2e-3)
    torch.testing.assert_close(found.gradient, wanted.gradient, rtol=0.15, atol=0.05)
    torch.testing.assert_close(found.curvature, wanted.curvature, rtol=0, atol=0.02)
    # A batch is as many single ones.
    alone = law.expansion(at[1, 0])
    torch.testing.assert_close(alone.value, found.value[1, 0], rtol=0, atol=1e-9)
    torch.testing.assert_close(alone.curvature, found.curvature[1, 0], rtol=0, atol=1e-9)


def test_in_two_dimensions_it_agrees_with_the_polygon():
    normals, offsets = number([-1.0, 0.2], [0.3, -1.0], [1.0, 1.0]), number(0.5, 0.4, 1.2)
    at = number([0.1, 0.0], [1.5, 0.5], [-3.0, 2.0])
    found = PolytopeProbability(normals, offsets, points=2048).expansion(at)
    wanted = PolygonProbability(vertices_of(normals, offsets)).expansion(at)
    torch.testing.assert_close(found.value, wanted.value, rtol=0, atol=2e-3)
    torch.testing.assert_close(found.gradient, wanted.gradient, rtol=0, atol=0.02)
    torch.testing.assert_close(found.curvature, wanted.curvature, rtol=0, atol=0.02)


def test_a_thin_slab_is_thin_in_every_direction_of_its_points():
    # Along the exact coordinate |x + y + z| <= .1 is empty nowhere, and its cut with a box often.
    normal = torch.ones(1, 3, dtype=torch.float64)
    slab = torch.cat([normal, -normal])
    law = PolytopeProbability(slab, number(0.1, 0.1))
    centre = number(0.4, 0.0, -0.1)
    exact = torch.special.ndtr((0.1 - centre.sum()) / 3**0.5) - torch.special.ndtr(
        (-0.1 - centre.sum()) / 3**0.5
    )
    assert float(law.log_probability(centre).exp()) == pytest.approx(float(exact), rel=5e-3)
    cut = PolytopeProbability(
        torch.cat([slab, FACES]), torch.cat([number(0.1, 0.1), 0.5 * torch.ones(6).double()])
    )
    draws = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    inside = ((draws.sum(-1).abs() <= 0.1) & (draws.abs() <= 0.5).all(-1)).double().mean()
    assert float(cut.log_probability(0 * centre).exp()) == pytest.approx(float(inside), rel=0.05)
