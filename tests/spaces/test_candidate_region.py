import pytest
import torch

from rehearsal_torch.seeding import sobol
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
    at = points([1.0, 1.0]).requires_grad_()
    assert region.unit(at).tolist() == [[0.5, 0.5]]
    region.unit(at).sum().backward()
    assert at.grad.tolist() == [[0.0, 0.5]]
    assert region.units(points([0.5, 0.5])).tolist() == [[1.0, 1.0]]


def test_a_limit_in_actions_is_the_same_limit_in_unit_coordinates():
    # a + b <= 2, so (0, 2) and (2, 0) lie on it.
    region = box(limit(1.0, 1.0, offset=2.0))
    assert region.limited
    assert region.normals.norm(dim=-1).tolist() == pytest.approx([1.0])
    actions = points([0.0, 2.0], [2.0, 0.0], [1.0, 0.9], [1.0, 1.1], [2.1, -1.0])
    assert region.contains(region.unit(actions)).tolist() == [True, True, True, False, False]


def test_several_limits_have_unit_normals_in_unit_coordinates():
    # 3 a + 4 b <= 6, b >= -1/2 and a <= 1, with c free: a = 2 z_1, b = 4 z_2 - 1, c = 5 z_3 + 1.
    faces = Polytope(("a", "b"), points([3.0, 4.0], [0.0, -1.0], [1.0, 0.0]), points(6.0, 0.5, 1.0))
    region = CandidateRegion.within(points(0.0, -1.0, 1.0), points(2.0, 3.0, 6.0), faces)
    long = (6**2 + 16**2) ** 0.5
    wanted = points([6.0, 16.0, 0.0], [0.0, -4.0, 0.0], [2.0, 0.0, 0.0]) / points([long], [4.0], [2.0])
    torch.testing.assert_close(region.normals, wanted)
    torch.testing.assert_close(region.offsets, points(10.0 / long, -0.5 / 4, 1.0 / 2))


def test_the_bounds_and_the_limits_belong_to_the_region():
    region = CandidateRegion.within(points(0.0, 0.0), points(1.0, 1.0), limit(1.0, offset=0.5))
    on = points([0.0, 0.0], [0.5, 1.0], [0.5, 0.0])
    assert region.contains(on).tolist() == [True] * 3
    off = points([-1e-6, 0.0], [0.5, 1.0 + 1e-6], [0.5 + 1e-6, 0.0])
    assert region.contains(off).tolist() == [False] * 3
    assert not box().limited


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


def test_each_of_several_points_is_brought_to_the_nearest_within_a_slanted_limit():
    # z_1 + z_2 <= 1 in a box of three coordinates, beyond it by .6, .3 and nothing.
    region = CandidateRegion.within(points(0.0, 0.0, 0.0), points(1.0, 1.0, 1.0), limit(1.0, 1.0, offset=1.0))
    given = points([0.9, 0.7, 0.2], [0.4, 0.9, 2.0], [0.1, 0.1, -0.5], [1.0, 0.1, 0.6])
    wanted = points([0.6, 0.4, 0.2], [0.25, 0.75, 1.0], [0.1, 0.1, 0.0], [0.95, 0.05, 0.6])
    found = region.into(given)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-7)
    assert bool((found[:, :2].sum(-1) <= 1).all()), "without a tolerance"
    torch.testing.assert_close(region.into(given[:1]), found[:1], rtol=0, atol=1e-12)


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


def test_the_first_of_sixteen_times_as_many_sobol_points_within_the_limits_are_taken():
    roomy, narrow = box(limit(1.0, offset=1.0)), box(limit(1.0, offset=0.05))
    drawn = sobol(2, 20).draw(17 * 8, dtype=torch.float64)
    assert torch.equal(roomy.spread(8, 20), drawn[roomy.contains(drawn)][:8])
    # 2.5 percent are left, fewer than required: a random walk supplies the others.
    few = drawn[: 16 * 8][narrow.contains(drawn[: 16 * 8])]
    found = narrow.spread(8, 20)
    assert 0 < len(few) < 8
    assert torch.equal(found[: len(few)], few)
    assert not bool((found[len(few) :, None] == drawn[None]).all(-1).any())


def test_without_limits_a_longer_spread_goes_on_where_a_shorter_one_ended():
    assert torch.equal(box().spread(8, 0), box().spread(32, 0)[:8])
    # A Sobol sequence fills each half of each coordinate equally.
    assert (box().spread(64, 0) < 0.5).sum(0).tolist() == [32, 32]
