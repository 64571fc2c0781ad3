"""log P(w in Q): every law against simulation, SciPy and automatic differentiation, near the region and far
from it."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from rehearsal_torch.objectives.gaussian_success import region_probability_of
from rehearsal_torch.objectives.region_probability import (
    PolygonProbability,
    PolytopeProbability,
    RectangleProbability,
    concave,
    interval,
    log_interval,
    rectangle_of,
    tail,
    vertices_of,
)

TRIANGLE = (
    torch.tensor([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], dtype=torch.float64),
    torch.tensor([0.3, 0.4, 1.2], dtype=torch.float64),
)
BOX = (
    torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64),
    torch.tensor([1.0, 0.5, 2.0, 0.3], dtype=torch.float64),
)
WEDGE = (
    torch.tensor([[-1.0, 0.2], [0.1, -1.0]], dtype=torch.float64),
    torch.tensor([0.3, 0.4], dtype=torch.float64),
)
SOLID = (
    torch.tensor(
        [[-1.0, 0.0, 0.2], [0.0, -1.0, 0.0], [0.0, 0.3, -1.0], [1.0, 1.0, 1.0]], dtype=torch.float64
    ),
    torch.tensor([1.0, 1.2, 0.9, 2.0], dtype=torch.float64),
)


def laws():
    return {
        "interval": rectangle_of(torch.tensor([[2.0], [-1.0]]).double(), torch.tensor([1.0, 0.7]).double()),
        "half line": rectangle_of(torch.tensor([[-1.0]]).double(), torch.tensor([0.7]).double()),
        "rectangle": rectangle_of(*BOX),
        "triangle": region_probability_of(*TRIANGLE),
        "wedge": region_probability_of(*WEDGE),
        "solid": region_probability_of(*SOLID),
    }


def regions():
    whole = {
        "interval": (torch.tensor([[2.0], [-1.0]]), torch.tensor([1.0, 0.7])),
        "half line": (torch.tensor([[-1.0]]), torch.tensor([0.7])),
    }
    return {
        **{name: (n.double(), s.double()) for name, (n, s) in whole.items()},
        "rectangle": BOX,
        "triangle": TRIANGLE,
        "wedge": WEDGE,
        "solid": SOLID,
    }


every = pytest.mark.parametrize("name", laws())


def centres(width, count=12, scale=1.5, seed=0):
    return scale * torch.randn(
        count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


@every
def test_probabilities_are_those_of_simulation(name):
    normals, offsets = regions()[name]
    at = centres(normals.shape[1], 4)
    draws = at.unsqueeze(1) + torch.randn(
        4, 200000, normals.shape[1], generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    share = (draws @ normals.mT <= offsets).all(-1).double().mean(-1)
    assert torch.allclose(laws()[name].log_probability(at).exp(), share, atol=0.004)


@every
def test_slopes_and_curvatures_are_derivatives(name):
    law = laws()[name]
    at = centres(regions()[name][0].shape[1], 6).requires_grad_(True)
    found = law.expansion(at.detach())
    value = law.log_probability(at)
    (gradient,) = torch.autograd.grad(value.sum(), at, create_graph=True)
    if name == "solid":
        # Of sampled points only differences over a stretch make sense, and of many of them; the moments are
        # to agree with these.
        law = PolytopeProbability(*SOLID, points=2**12)
        value, found = law.log_probability(at), law.expansion(at.detach())
        (gradient,) = torch.autograd.grad(value.sum(), at)
        step = 0.2 * torch.eye(3, dtype=torch.float64)
        curvature = (
            torch.stack(
                [
                    law.expansion(at.detach() + e).gradient - law.expansion(at.detach() - e).gradient
                    for e in step
                ],
                -2,
            )
            / 0.4
        )
    else:
        curvature = torch.stack(
            [torch.autograd.grad(gradient[:, i].sum(), at, retain_graph=True)[0] for i in range(at.shape[1])],
            -2,
        )
    assert torch.allclose(found.value, value, atol=1e-12)
    assert torch.allclose(found.gradient, gradient, atol=1e-8)
    assert torch.allclose(found.curvature, curvature, atol=0.1 if name == "solid" else 1e-7)


@every
def test_log_probabilities_are_concave(name):
    # Prekopa: on any line, and with a Hessian between -I and 0.
    law = laws()[name]
    one, other = (
        centres(regions()[name][0].shape[1], 80, 4.0),
        centres(regions()[name][0].shape[1], 80, 4.0, seed=3),
    )
    share = torch.rand(80, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    between = law.log_probability(share * one + (1 - share) * other)
    chord = share[:, 0] * law.log_probability(one) + (1 - share[:, 0]) * law.log_probability(other)
    # What quadrature leaves open: nothing for intervals, hundredths far away for polygons, more for sampled
    # points.
    slack = {"solid": 0.5, "triangle": 0.06, "wedge": 0.06}.get(name, 1e-9)
    assert (between >= chord - slack).all()
    values = torch.linalg.eigvalsh(law.expansion(one).curvature)
    assert (values <= 1e-12).all()
    assert (values >= -1 - 1e-12).all()


def test_a_correlated_rectangle_is_scipys():
    covariance = torch.tensor([[1.0, 0.6], [0.6, 2.0]]).double()
    root = torch.linalg.cholesky(covariance)
    law = region_probability_of(BOX[0] @ root, BOX[1])
    mean = torch.tensor([[0.3, -0.2]]).double()
    at = torch.linalg.solve_triangular(root, mean.mT, upper=False).mT
    expected = multivariate_normal(mean[0].numpy(), covariance.numpy()).cdf(
        [1.0, 2.0], lower_limit=[-0.5, -0.3]
    )
    assert float(law.log_probability(at).exp()) == pytest.approx(expected, abs=1e-6)


def test_intervals_keep_their_digits_in_both_tails():
    for lower, upper in (
        (-1.0, 1.0),
        (8.0, 9.0),
        (-9.0, -8.0),
        (30.0, 31.0),
        (0.5, 0.5 + 1e-9),
        (-50.0, 50.0),
    ):
        found = float(
            log_interval(torch.tensor(lower, dtype=torch.float64), torch.tensor(upper, dtype=torch.float64))
        )
        left, right = (-upper, -lower) if lower > 0 else (lower, upper)
        expected = norm.logcdf(right) + np.log1p(-np.exp(norm.logcdf(left) - norm.logcdf(right)))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)
    assert float(log_interval(torch.tensor(1.0), torch.tensor(1.0))) == -math.inf


def test_skew_regions_are_no_rectangles_and_empty_ones_no_polygons():
    assert rectangle_of(*TRIANGLE) is None


@pytest.mark.parametrize("width", [1, 2, 3])
def test_curvatures_are_brought_back_into_their_bounds(width):
    root = torch.randn(20, width, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    curvature = (root + root.mT) / 2
    values, vectors = torch.linalg.eigh(curvature)
    expected = vectors * values.clamp(-1, 0).unsqueeze(-2) @ vectors.mT
    assert torch.allclose(concave(curvature), expected, atol=1e-10)


def test_of_faces_on_one_side_the_nearest_counts():
    # 2 x <= 2, x <= 3, x >= -2 and -5 x <= 2.5 are -1/2 <= x <= 1, in whatever order.
    normals, offsets = (
        torch.tensor([[2.0], [1.0], [-1.0], [-5.0]]).double(),
        torch.tensor([2, 3, 2, 2.5]).double(),
    )
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 1, 3, 0]):
        law = rectangle_of(normals[order], offsets[order])
        found = float(law.log_probability(torch.tensor([0.3], dtype=torch.float64)).exp())
        assert found == pytest.approx(norm.cdf(0.7) - norm.cdf(-0.8), abs=1e-12)


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


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


@pytest.mark.parametrize("distance", [9e4, 1.1e5, 1e6])
def test_very_far_outside_the_logarithm_falls_as_a_parabola(distance):
    law = PolygonProbability(number([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]))
    found = law.expansion(((distance / 2**0.5 + 0.5) * torch.ones(1, 2)).double())
    expected = torch.special.log_ndtr(number(-distance)) + math.log(math.erf(0.5))
    assert float(found.value) == pytest.approx(float(expected), rel=1e-6)
    assert found.gradient.tolist() == [[pytest.approx(-distance / 2**0.5, rel=1e-4)] * 2]


FACES = torch.cat([torch.eye(3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64)])
ASKEW = torch.cat([FACES, torch.tensor([[1.0, 1.0, 1.0]], dtype=torch.float64)])


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


def test_a_chance_keeps_its_precision_in_both_tails():
    lower, upper = torch.tensor([[-1.0, 2.0], [-30.0, -29.0], [8.0, 9.0], [8.0, 8.1], [3.0, 1.0]]).double().T
    expected = log_interval(lower, upper).exp()
    torch.testing.assert_close(interval(lower, upper), expected, rtol=1e-12, atol=0.0)
    assert interval(lower, upper)[1] > 0
