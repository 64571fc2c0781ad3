import pytest
import torch

from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.polytope import Polytope

LOWER, UPPER = torch.tensor([0.0, -1.0], dtype=torch.float64), torch.tensor([2.0, 3.0], dtype=torch.float64)


def limit(*normal, offset):
    """normal'a <= offset."""
    normals = torch.tensor([normal], dtype=torch.float64)
    return Polytope(tuple("ab"[: len(normal)]), normals, torch.tensor([offset], dtype=torch.float64))


def box(limits=None):
    return CandidateRegion.within(LOWER, UPPER, limits)


def points(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_units_and_unit_are_each_others_inverse():
    region = box()
    assert region.units(points([0.5, 0.25])).tolist() == [[1.0, 0.0]]
    some = torch.rand(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(region.unit(region.units(some)), some)


def test_a_bound_that_leaves_no_choice_is_the_middle():
    region = CandidateRegion.within(points(1.0, 0.0), points(1.0, 2.0), None)
    assert region.unit(points([1.0, 1.0])).tolist() == [[0.5, 0.5]]
    assert region.units(points([0.5, 0.5])).tolist() == [[1.0, 1.0]]


def test_a_limit_in_actions_is_the_same_limit_in_unit_coordinates():
    # a + b <= 2, so (0, 2) and (2, 0) lie on it.
    region = box(limit(1.0, 1.0, offset=2.0))
    assert region.limited
    assert region.normals.norm(dim=-1).tolist() == pytest.approx([1.0])
    actions = points([0.0, 2.0], [2.0, 0.0], [1.0, 0.9], [1.0, 1.1], [2.1, -1.0])
    assert region.contains(region.unit(actions)).tolist() == [True, True, True, False, False]


def test_limits_on_the_first_coordinates_leave_the_others_free():
    region = box(limit(1.0, offset=1.0))
    assert region.contains(region.unit(points([0.9, 3.0], [1.1, -1.0]))).tolist() == [True, False]


def test_points_outside_are_brought_to_the_nearest():
    assert box().into(points([1.5, -0.5], [0.3, 0.4])).tolist() == [[1.0, 0.0], [0.3, 0.4]]
    # In unit coordinates a <= 1 is z_1 <= 1/2.
    region = box(limit(1.0, offset=1.0))
    found = region.into(points([0.9, 0.2], [0.2, 0.7]))
    assert found[0].tolist() == pytest.approx([0.5, 0.2], abs=1e-6)
    assert found[1].tolist() == [0.2, 0.7]
    assert bool(region.contains(found).all())


@pytest.mark.parametrize(
    "limits", [None, limit(1.0, 1.0, offset=2.0), limit(1.0, offset=0.01), limit(1.0, offset=1e-4)]
)
def test_points_are_spread_within_the_region_as_the_seed_says(limits):
    region = box(limits)
    found = region.spread(64, seed=3)
    assert found.shape == (64, 2)
    assert bool(region.contains(found).all())
    assert len(found.unique(dim=0)) == 64
    assert torch.equal(region.spread(64, seed=3), found)
    assert not torch.equal(region.spread(64, seed=4), found)


def test_without_limits_a_longer_spread_goes_on_where_a_shorter_one_ended():
    assert torch.equal(box().spread(8, 0), box().spread(32, 0)[:8])
    # A Sobol sequence fills each half of each coordinate equally.
    assert (box().spread(64, 0) < 0.5).sum(0).tolist() == [32, 32]
