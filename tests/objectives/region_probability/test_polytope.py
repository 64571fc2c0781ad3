import pytest
import torch

from rehearsal_torch.objectives.region_probability.polytope import PolytopeProbability

FACES = torch.cat([torch.eye(3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64)])
ASKEW = torch.cat([FACES, torch.tensor([[1.0, 1.0, 1.0]], dtype=torch.float64)])


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


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
    plain, scaled, other = (
        PolytopeProbability(3 * FACES, torch.full((6,), 3.0, dtype=torch.float64), seed=seed)
        if seed
        else PolytopeProbability(FACES, torch.ones(6, dtype=torch.float64))
        for seed in (0, 0, 5)
    )
    at = number(0.5, 0.0, 0.0)
    assert torch.equal(plain.log_probability(at), scaled.log_probability(at))
    assert float(other.log_probability(at)) == pytest.approx(float(plain.log_probability(at)), abs=5e-3)
    assert not torch.equal(other.log_probability(at), plain.log_probability(at))


def test_one_dimension_is_refused():
    with pytest.raises(ValueError, match="use RectangleProbability"):
        PolytopeProbability(torch.ones(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))


def test_slope_and_curvature_are_the_moments_of_the_cut_off_normal():
    sides, at = number(1, 1, 1, 1, 1, 1, 0.5), number(0.2, -0.3, 0.1)
    draws = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    inside = draws[((draws + at) @ ASKEW.mT <= sides).all(-1)]
    found = PolytopeProbability(ASKEW, sides).expansion(at)
    torch.testing.assert_close(found.gradient, inside.mean(0), rtol=0, atol=0.01)
    curvature = inside.mT.cov(correction=0) - torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(found.curvature, curvature, rtol=0, atol=0.01)
