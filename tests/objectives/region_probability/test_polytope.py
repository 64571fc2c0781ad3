import pytest
import torch

from rehearsal_torch.objectives.region_probability.polygon import PolygonProbability, vertices_of
from rehearsal_torch.objectives.region_probability.polytope import PolytopeProbability
from rehearsal_torch.objectives.region_probability.rectangle import RectangleProbability

FACES = torch.cat([torch.eye(3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64)])
ASKEW = torch.cat([FACES, torch.tensor([[1.0, 1.0, 1.0]], dtype=torch.float64)])


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


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
