import math

import pytest
import torch

from rehearsal_torch.seeding import sobol
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.polytope import Polytope

LOWER, UPPER = torch.tensor([0.0, -1.0], dtype=torch.float64), torch.tensor([2.0, 3.0], dtype=torch.float64)


def limit(*normal, offset):
    """normal'a <= offset."""
    normals = torch.tensor([normal], dtype=torch.float64)
    return Polytope(tuple("abc"[: len(normal)]), normals, torch.tensor([offset], dtype=torch.float64))


def box(limits=None):
    return CandidateRegion.within(LOWER, UPPER, limits)


def points(*rows):
    return torch.tensor(rows, dtype=torch.float64)


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


def bounded(normals, offsets, size, levels=None):
    """Between 0 and 1, with inequalities."""
    faces = Polytope(tuple("abcdefgh"[:size]), points(*normals), points(*offsets))
    zeros = torch.zeros(size, dtype=torch.float64)
    return CandidateRegion.within(zeros, zeros + 1, faces).at(levels or {})


@pytest.mark.parametrize(
    ("normals", "offsets", "levels", "equal", "others"),
    [
        ([[1, 1], [-1, -1]], [1, -1], {}, 1, 0),  # a + b = 1
        ([[1, -1], [-1, 1], [1, 0]], [0, 0, 0.5], {}, 1, 1),  # a = b, a <= 1/2
        ([[3, 7, 1.1], [-3, -7, -1.1]], [2, -2], {}, 1, 0),
        ([[1, 1, 1], [-1, -1, -1]], [1, -1], {0: (0.3,)}, 1, 0),
        ([[1] * 8, [-1] * 8], [1, -1], {}, 1, 0),
        # Implied by three: a <= 1/2 and b <= 1/2 where a + b >= 1.
        ([[1, 0, 0], [0, 1, 0], [-1, -1, 0]], [0.5, 0.5, -1], {}, 2, 0),
        ([[1, -1, 0], [-1, 1, 0]], [1e-3, 1e-3], {}, 0, 2),  # thin
        ([[1, 1, 1], [-1, -1, -1]], [1, -0.99999], {}, 0, 2),
    ],
)
def test_thin_regions_and_planes_are_spread_over(normals, offsets, levels, equal, others):
    """Equalities gave one point again and again."""
    made = bounded(normals, offsets, len(normals[0]), levels)
    found = made.spread(64, 3)
    assert bool(made.contains(found).all())
    assert torch.equal(made.spread(64, 3), found)
    assert torch.pdist(found).min() > 1e-6
    free = [column for column in range(found.shape[1]) if found[:, column].std() > 1e-3]
    assert len(free) >= found.shape[1] - max(equal, 1) - len(levels)
    # The narrowest range is that of b <= 2/7.
    assert bool((found[:, free].amax(0) - found[:, free].amin(0) > 0.2).all())
    (rows, level), (left, _) = made.equalities, made.inequalities
    assert (len(rows), len(left)) == (equal, others)
    torch.testing.assert_close(rows @ rows.mT, torch.eye(equal, dtype=torch.float64))
    torch.testing.assert_close(found @ rows.mT, level.expand(64, -1), rtol=0, atol=1e-9)


def test_few_points_are_listed():
    tenths = tuple(each / 10 for each in range(11))
    assert bounded([[1, 1], [-1, -1]], [1, -1], 2).finite() is None
    assert bounded([[1, 1], [-1, -1]], [2, -2], 2).finite().tolist() == [[1.0, 1.0]]
    both = bounded([[1, 1], [-1, -1]], [1, -1], 2, {0: tenths, 1: tenths}).finite()
    torch.testing.assert_close(both[both[:, 0].argsort()], points(*[[each, 1 - each] for each in tenths]))
    # What is held by an equality is as good as a level.
    one = bounded([[1, 1], [-1, -1]], [1, -1], 2, {0: tenths}).finite()
    torch.testing.assert_close(one[one[:, 0].argsort()], both[both[:, 0].argsort()])
    assert bounded([[1, 1]], [1], 2, {0: tenths}).finite() is None
    many = {0: tuple(torch.linspace(0, 1, 5000).tolist())}
    assert CandidateRegion.within(points(0.0), points(1.0), None).at(many).finite() is None
    # In the order of the sequence that other points come from.
    few = box().at({0: (0.0, 2.0), 1: (-1.0, 0.0, 3.0)})
    assert torch.equal(few.finite(3)[:2], few.spread(2, 3))
    assert sorted(few.units(few.finite(3)).tolist()) == [[a, b] for a in (0, 2) for b in (-1, 0, 3)]


DOUBLE = torch.float64
# Neither 0.1 + 0.7 z nor 3 z / 7 gives the levels back without rounding.
LEVELS = {0: (0.1, 0.3, 0.8), 2: (-1.0, 0.0, 1 / 3, 2.0)}


def tensor(*values):
    return torch.tensor(values, dtype=DOUBLE)


def region(levels=LEVELS, limits=None):
    return CandidateRegion.within(tensor(0.1, 0.0, -1.0), tensor(0.8, 10.0, 2.0), limits).at(levels)


def test_levels_come_back_to_the_last_bit_and_others_as_in_a_box():
    made, plain = region(), region({})
    points = torch.rand(200, 3, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    actions = made.units(points)
    assert set(actions[:, 0].tolist()) == set(LEVELS[0])
    assert set(actions[:, 2].tolist()) == set(LEVELS[2])
    assert torch.equal(actions[:, 1], plain.units(points)[:, 1])
    assert torch.equal(made.units(made.unit(actions))[:, [0, 2]], actions[:, [0, 2]])


def test_the_derivative_at_a_level_is_zero():
    points = tensor([0.5, 0.5, 0.5]).requires_grad_(True)
    (gradient,) = torch.autograd.grad(region().units(points).sum(), points)
    assert gradient.tolist() == [[0.0, 10.0, 0.0]]


def test_a_log_scale_is_spread_by_orders_of_magnitude_within_its_bounds():
    made = CandidateRegion.within(tensor(0.001, 1.0), tensor(10.0, 1000.0), None, (0, 1)).at(
        {1: range(1, 1001)}
    )
    actions = made.units(made.spread(256, 0))
    for column, share in ((0, 1 / 4), (1, 1 / 3)):
        assert float((actions[:, column] < 10 * made.logs[column][0]).double().mean()) == pytest.approx(
            share, abs=0.05
        )
    ends = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=DOUBLE, requires_grad=True)
    assert made.units(ends).tolist() == [[0.001, 1.0], [10.0, 1000.0]]
    assert torch.allclose(made.units(made.unit(actions)), actions)
    (gradient,) = torch.autograd.grad(made.units(ends).sum(), ends)
    assert gradient[:, 0].tolist() == pytest.approx([0.001 * math.log(10_000), 10 * math.log(10_000)])


def test_a_point_belongs_to_the_region_at_its_levels_only():
    made = region()
    inside = made.unit(tensor([0.3, 4.0, 1 / 3], [0.31, 4.0, 1 / 3], [0.3, 11.0, 1 / 3]))
    assert made.contains(inside).tolist() == [True, False, False]


@pytest.mark.parametrize("power", [3, 5, 8])
def test_levels_occur_equally_often(power):
    points = region().units(region().spread(2**power, 4))
    for place, values in LEVELS.items():
        counts = [int((points[:, place] == value).sum()) for value in values]
        assert max(abs(count - 2**power / len(values)) for count in counts) <= 1
    assert len(points[:, 1].unique()) == 2**power


def test_a_coordinate_that_is_held_has_its_value_everywhere():
    held = region({}).at({1: (3.7,)})
    assert held.combinations == 1
    assert set(held.units(held.spread(16, 0))[:, 1].tolist()) == {3.7}
    assert held.units(held.into(tensor([0.5, 0.0, 0.5])))[:, 1].tolist() == [3.7]


def test_coordinates_with_many_levels_are_relaxed():
    made = region()
    assert made.relaxed(3).levels == {0: LEVELS[0]}
    assert type(made.relaxed(1)) is CandidateRegion
    assert region({}).at({1: (3.7,)}).relaxed(0).levels == {1: (3.7,)}


def test_neighbours_differ_in_one_level():
    made = region()
    point = made.unit(tensor([0.3, 4.0, 2.0]))
    moved, origins = made.neighbours(point, 20)
    assert origins.tolist() == [0] * 5
    found = made.units(moved)
    assert torch.equal(found[:, 1], made.units(point)[:, 1].expand(5))
    pairs = set(map(tuple, found[:, [0, 2]].tolist()))
    assert pairs == {(0.1, 2.0), (0.8, 2.0), (0.3, -1.0), (0.3, 0.0), (0.3, 1 / 3)}
    # Of four levels, more than two, only the next one.
    moved, _ = made.neighbours(point, 2)
    assert set(made.units(moved)[:, 2].tolist()) == {2.0, 1 / 3}


def test_a_change_of_level_moves_the_others_back_within_the_limits():
    # b + 10 c <= 10: at c = -1 every b, at c = 0 up to 10, at 1/3 up to 6.67, and none at 2.
    made = region(limits=limit(0.0, 1.0, 10.0, offset=10.0))
    moved, origins = made.neighbours(made.unit(tensor([0.1, 9.0, 0.0])), 20)
    found = {tuple(row) for row in made.units(moved)[:, [0, 2]].tolist()}
    assert found == {(0.3, 0.0), (0.8, 0.0), (0.1, -1.0), (0.1, 1 / 3)}
    third = made.units(moved)[made.units(moved)[:, 2] == 1 / 3]
    assert float(third[0, 1]) == pytest.approx(20 / 3, abs=1e-6)
    assert len(origins) == 4


def test_where_the_nearest_levels_are_infeasible_others_are_found():
    # a + c >= 2.8 leaves only a = 0.8, c = 2.
    made = region(limits=limit(-1.0, 0.0, -1.0, offset=-2.8 + 1e-12))
    found = made.units(made.into(tensor([0.0, 0.3, 0.1], [1.0, 0.6, 1.0])))
    assert found[:, [0, 2]].tolist() == [[0.8, 2.0], [0.8, 2.0]]
    assert found[:, 1].tolist() == pytest.approx([3.0, 6.0])
    spread = made.units(made.spread(16, 0))
    assert bool((spread[:, 0] == 0.8).all() & (spread[:, 2] == 2.0).all())


def test_limits_that_no_combination_satisfies_are_told():
    # 0.35 <= a <= 0.75 lies between two levels.
    faces = Polytope(("a",), tensor([1.0], [-1.0]), tensor(0.75, -0.35))
    made = region(limits=faces)
    assert not made.possible()
    assert region(limits=limit(1.0, offset=0.2)).possible()


def test_where_little_is_left_beside_what_is_held_points_are_spread_all_the_same():
    # With b = 3.7 only c <= -1 + .003 is left.
    held = region({}, limit(0.0, 1.0, 10.0, offset=-6.27)).at({1: (3.7,)})
    points = held.units(held.spread(16, 0))
    assert set(points[:, 1].tolist()) == {3.7}
    assert bool((points[:, 2] <= -1 + 0.003 + 1e-6).all())
    assert len(points[:, 0].unique()) > 8


def test_levels_of_very_different_size_stay_apart():
    made = CandidateRegion.within(tensor(1e-9), tensor(1e3), None).at({0: (1e-9, 1e-8, 1e-3, 1.0, 1e3)})
    actions = tensor([1e-9], [1e-8], [1e3])
    assert torch.equal(made.units(made.unit(actions)), actions)
    moved, origins = made.neighbours(made.at_levels(made.unit(actions)), 2)
    assert list(zip(origins.tolist(), made.units(moved)[:, 0].tolist(), strict=True)) == [
        (0, 1e-8),
        (1, 1e-9),
        (1, 1e-3),
        (2, 1.0),
    ]


def test_points_that_are_moved_satisfy_the_limits_without_a_tolerance():
    made = region(limits=limit(0.0, 1.0, 10.0, offset=10.0))
    given = tensor([0.0, 0.9, 0.45], [1.0, 1.0, 0.3])
    found = made.into(given)
    assert bool((found @ made.normals.mT <= made.offsets).all())
    assert made.units(found)[:, 1].tolist() == pytest.approx([20 / 3, 10.0], abs=1e-6)
    torch.testing.assert_close(made.into(given[:1]), found[:1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("start", "sum_of_two", "nearest"),
    [
        ((0.0, 0.0), (0.3, 2.0), (0.0, 0.4)),
        ((1.0, 1.0), (0.0, 1.55), (0.5, 1.0)),
        ((0.0, 0.0), (1.3, 2.0), (1.0, 0.4)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_nearest_levels_are_those_of_the_least_sum_of_distances(start, sum_of_two, nearest, turned):
    levels = [(0.0, 0.5, 1.0), (0.0, 0.4, 1.0)]
    if turned:
        levels, start, nearest = levels[::-1], start[::-1], nearest[::-1]
    faces = Polytope(("a", "b"), tensor([1.0, 1.0], [-1.0, -1.0]), tensor(sum_of_two[1], -sum_of_two[0]))
    plain = CandidateRegion.within(tensor(0.0, 0.0), tensor(1.0, 1.0), faces)
    found = plain.at(dict(enumerate(levels))).into(tensor(start))
    assert found.tolist() == [list(nearest)]


def test_a_bound_that_leaves_no_choice_has_its_level_in_the_middle():
    made = CandidateRegion.within(tensor(2.0, 0.0), tensor(2.0, 1.0), None).at({0: (2.0,)})
    assert made.unit_levels == {0: (0.5,)}
    assert made.units(made.spread(4, 0))[:, 0].tolist() == [2.0] * 4
