import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from rehearsal_torch.objectives.region_probability import probability, vertices_of
from rehearsal_torch.problems.cases.gaussian_region_probability import Disc, between, probability_in
from rehearsal_torch.spaces.polytope import Polytope

DOUBLE = torch.float64
COVARIANCE = torch.tensor([[0.5, 0.3], [0.3, 0.4]], dtype=DOUBLE)


def test_one_outcome_is_a_difference_of_distribution_functions():
    mean, variance = torch.tensor([[-0.4], [0.7], [3.0]], dtype=DOUBLE), torch.tensor([[0.09]], dtype=DOUBLE)
    for lower, upper in ((0.5, 2.0), (None, 0.5), (0.5, None)):
        expected = norm.cdf(math.inf if upper is None else upper, mean[:, 0], 0.3) - norm.cdf(
            -math.inf if lower is None else lower, mean[:, 0], 0.3
        )
        found = probability_in(Polytope.of({"y": (lower, upper)}), mean, variance)
        torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=1e-12)


def test_a_rectangle_against_a_bivariate_distribution_function():
    region = Polytope.of({"a": (0.0, 2.0), "b": (-0.5, 1.0)})
    for mean in ([0.0, 0.0], [1.0, 0.5], [-1.0, 2.0]):
        system = multivariate_normal(mean, COVARIANCE.numpy(), maxpts=10**6, abseps=1e-10)
        expected = system.cdf([2.0, 1.0], lower_limit=[0.0, -0.5])
        assert float(probability_in(region, torch.tensor(mean, dtype=DOUBLE), COVARIANCE)) == pytest.approx(
            expected, abs=1e-7
        )


polygons = st.lists(st.tuples(st.floats(0, 2 * math.pi), st.floats(0.05, 3.0)), min_size=1, max_size=6)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(polygons, st.floats(-0.95, 0.95), st.floats(0.05, 2.0))
def test_any_polygon_against_the_sum_over_its_edges(faces, correlation, scale):
    # Two independent methods: slices here, Owen's triangles there. Every face leaves the origin inside.
    normals = torch.tensor([[math.cos(angle), math.sin(angle)] for angle, _ in faces], dtype=DOUBLE)
    offsets = torch.tensor([distance for _, distance in faces], dtype=DOUBLE)
    covariance = torch.tensor([[1.0, correlation * scale], [correlation * scale, scale**2]], dtype=DOUBLE)
    root = torch.linalg.cholesky(covariance)
    mean = torch.tensor([[0.0, 0.0], [1.0, -1.0], [-2.0, 0.5]], dtype=DOUBLE)
    expected = probability(
        vertices_of(normals @ root, offsets), torch.linalg.solve_triangular(root, mean.mT, upper=False).mT
    )
    found = probability_in(Polytope(("a", "b"), normals, offsets), mean, covariance)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_disc_against_fine_polygons_and_in_closed_form():
    disc = Disc(("a", "b"), (1.2, 1.5), 1.0)
    # Around its centre an isotropic normal has Rayleigh distances.
    isotropic = 0.16 * torch.eye(2, dtype=DOUBLE)
    centre = torch.tensor([1.2, 1.5], dtype=DOUBLE)
    assert float(probability_in(disc, centre, isotropic)) == pytest.approx(1 - math.exp(-1 / 0.32), abs=1e-9)
    for mean in (centre, centre + 0.7, centre - 2.0):
        inside, whole = (
            float(probability_in(region, mean, COVARIANCE)) for region in (disc.polygon(400), disc)
        )
        assert inside == pytest.approx(whole, abs=1e-4)
        assert float(probability_in(disc.polygon(16), mean, COVARIANCE)) < whole


def test_differences_keep_their_digits_in_both_tails():
    far = between(torch.tensor([9.0, -10.0], dtype=DOUBLE), torch.tensor([10.0, -9.0], dtype=DOUBLE))
    assert far.tolist() == pytest.approx([norm.sf(9.0)] * 2, rel=1e-3)
    assert between(torch.tensor(1.0), torch.tensor(0.0)) == 0


def test_the_polygon_of_a_disc_lies_inside_it():
    disc = Disc(("a", "b"), (1.2, 1.5), 1.0)
    points = torch.rand(
        2000, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE
    ) * 2.4 + torch.tensor([0.0, 0.3], dtype=DOUBLE)
    inside = disc.polygon(16).contains(points)
    assert inside.any()
    assert disc.contains(points)[inside].all()
    assert (disc.contains(points) & ~inside).sum() < 0.05 * inside.sum()
