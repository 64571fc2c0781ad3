"""log P(w in Q): every law against simulation, SciPy and automatic differentiation, near the region and far
from it."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal, norm

from rehearsal_torch.objectives.gaussian_success import region_probability_of
from rehearsal_torch.objectives.region_probability.polygon import (
    PolygonProbability,
    PolytopeProbability,
    probability,
    triangle,
    vertices_of,
)
from rehearsal_torch.objectives.region_probability.rectangle import (
    RectangleProbability,
    concave,
    log_interval,
    rectangle_of,
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


def test_a_triangle_under_the_density_is_the_integral():
    for h, t in ((0.5, 0.3), (0.3, 1.7), (2.0, 2.0), (1e-3, 4.0)):
        expected, _ = dblquad(lambda y, x: norm.pdf(x) * norm.pdf(y), 0, h, 0, lambda x, h=h, t=t: t * x / h)
        assert float(triangle(torch.tensor(h).double(), torch.tensor(t).double())) == pytest.approx(
            expected, abs=1e-8
        )
        assert float(triangle(torch.tensor(-h).double(), torch.tensor(t).double())) == pytest.approx(
            -expected, abs=1e-8
        )


def test_few_nodes_are_enough_for_eight_digits():
    corners, at = vertices_of(*TRIANGLE), centres(2, 200, 2.0)
    assert torch.allclose(probability(corners, at, 6), probability(corners, at, 24), atol=1e-7)
    assert torch.allclose(probability(corners, at, 12), probability(corners, at, 24), atol=1e-12)


def test_open_regions_are_half_planes():
    law = PolygonProbability(vertices_of(torch.tensor([[1.0, 1.0]]).double(), torch.tensor([0.7]).double()))
    at = torch.tensor([[0.0, 0.0], [3.0, 3.0], [-8.0, 2.0], [20.0, 20.0]]).double()
    assert torch.allclose(
        law.log_probability(at), torch.special.log_ndtr((0.7 - at.sum(-1)) / math.sqrt(2)), atol=1e-2
    )


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
    with pytest.raises(ValueError, match="orthonormal"):
        RectangleProbability(
            torch.tensor([[1.0, 0.0], [0.6, 0.8]]).double(), torch.zeros(2).double(), torch.ones(2).double()
        )
    with pytest.raises(ValueError, match="empty interior"):
        vertices_of(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double(), torch.tensor([0.0, -1.0]).double())
    with pytest.raises(ValueError, match="interval"):
        PolytopeProbability(torch.ones(1, 1).double(), torch.ones(1).double())


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
