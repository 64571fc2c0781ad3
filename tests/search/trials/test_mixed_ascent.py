"""Ascents with levels against every combination, with the other coordinate on a dense grid; which
combinations are evaluated, which of their starts go on, and when an ascent ends.
"""

from itertools import product

import pytest
import torch

from rehearsal_torch.data.finite import NoFiniteValueError
from rehearsal_torch.search.search import UNLIMITED, Budget
from rehearsal_torch.search.trials import mixed_ascent
from rehearsal_torch.search.trials.mixed_ascent import UnitAcquisition, _distinct, ascend, ascended
from rehearsal_torch.spaces.candidate_region import CandidateRegion, with_levels
from rehearsal_torch.spaces.polytope import Polytope

DOUBLE = torch.float64
LOWER, UPPER = (0.0, -1.0, 0.0), (2.0, 3.0, 4.0)
THREES = {0: (0.0, 0.5, 2.0), 1: (-1.0, 1.0, 3.0)}
ALL = {**THREES, 2: (0.0, 0.7, 1.1, 4.0)}


def tensor(*values):
    return torch.tensor(values, dtype=DOUBLE)


def below(offset):
    """a + b + c <= offset."""
    return Polytope(("a", "b", "c"), torch.ones(1, 3, dtype=DOUBLE), tensor(offset))


def region(levels, limits=None, lower=LOWER, upper=UPPER):
    return with_levels(CandidateRegion.within(tensor(*lower), tensor(*upper), limits), levels)


def waves(seed):
    """A smooth function with several maxima over (a, b, c)."""
    draws = torch.Generator().manual_seed(seed)
    directions = 2 * torch.randn(4, 3, dtype=DOUBLE, generator=draws)
    phases = 6 * torch.rand(4, dtype=DOUBLE, generator=draws)
    centre = torch.rand(3, dtype=DOUBLE, generator=draws)

    def value(points):
        swing = torch.sin(points @ directions.mT + phases).sum(-1)
        return swing - 0.2 * (points - centre).square().sum(-1)

    return value


def reference(value, made, count=20_001):
    """The largest value at any combination of levels, with the free coordinate on a grid."""
    grid, best = torch.linspace(0, 1, count, dtype=DOUBLE), -torch.inf
    for levels in made.every():
        points = torch.zeros(count if made.free else 1, 3, dtype=DOUBLE)
        points[:, made.places] = levels
        if made.free:
            points[:, made.free] = grid.unsqueeze(-1)
        points = points[made.contains(points)]
        if len(points):
            best = max(best, float(value(made.units(points)).max()))
    return best


@pytest.mark.bench
@pytest.mark.parametrize("ascended", [64, 0])
@pytest.mark.parametrize("limits", [None, below(2.1), below(-0.4)])
@pytest.mark.parametrize("levels", [THREES, ALL])
def test_the_best_of_all_combinations_is_reached(monkeypatch, levels, limits, ascended):
    # With 0 the levels alternate with ascents, however few combinations there are.
    monkeypatch.setattr(mixed_ascent, "ASCENDED", ascended)
    monkeypatch.setattr(mixed_ascent, "EVALUATED", 64 * ascended)
    made = region(levels, limits)
    for seed in range(6):
        value = waves(seed)
        found = ascend(value, made, made.spread(32, seed))
        assert float(found.values[0]) >= reference(value, made) - 1e-6
        actions = made.units(found.points)
        torch.testing.assert_close(value(actions), found.values)
        for place, values in levels.items():
            assert set(actions[:, place].tolist()) <= set(values)
        assert bool(made.contains(found.points).all())
        assert bool((found.values.diff() <= 0).all())


def test_a_coordinate_that_is_held_leaves_the_ascent_of_the_others():
    value, plain = waves(1), region({})
    held = region({1: (0.4,)})
    found = ascend(value, held, plain.spread(32, 0))
    assert set(held.units(found.points)[:, 1].tolist()) == {0.4}
    axes = [torch.linspace(low, high, 401, dtype=DOUBLE) for low, high in ((0, 2), (0, 4))]
    a, c = torch.cartesian_prod(*axes).unbind(-1)
    assert (
        float(found.values[0]) >= float(value(torch.stack([a, torch.full_like(a, 0.4), c], -1)).max()) - 1e-6
    )
    # The same as a box in which it does not occur.
    box = CandidateRegion.within(tensor(0.0, 0.0), tensor(2.0, 4.0), None)

    def two(points):
        return value(torch.stack([points[..., 0], torch.full_like(points[..., 0], 0.4), points[..., 1]], -1))

    other = ascend(two, box, box.spread(32, 0))
    assert float(found.values[0]) == pytest.approx(float(other.values[0]), abs=1e-5)


def test_where_everything_is_held_there_is_one_point():
    made = region({0: (0.5,), 1: (1.0,), 2: (3.3,)})
    found = ascend(waves(0), made, made.spread(8, 0))
    assert made.units(found.points).tolist() == [[0.5, 1.0, 3.3]]


def test_many_combinations_without_another_coordinate_are_searched_alternately():
    # 12^4 combinations, more than are evaluated one by one: a sum of one term each, and products of two.
    values = tuple(torch.linspace(0, 1, 12, dtype=DOUBLE).tolist())
    size = 4
    made = region(dict.fromkeys(range(size), values), None, [0.0] * size, [1.0] * size)
    assert made.combinations > mixed_ascent.EVALUATED

    def value(points):
        return (
            torch.sin(7 * points).sum(-1) + points[..., 0] * points[..., 1] - points[..., 2] * points[..., 3]
        )

    found = ascend(value, made, made.spread(32, 0))
    every = tensor(*product(values, repeat=size))
    assert float(found.values[0]) == pytest.approx(float(value(every).max()), abs=1e-12)


def test_many_evaluated_combinations_are_screened_first():
    values = tuple(torch.linspace(0, 1, 10, dtype=DOUBLE).tolist())
    made = region(dict.fromkeys(range(3), values), None, [0.0] * 3, [1.0] * 3)
    seen = {"fine": 0, "rough": 0}

    def counted(name, shift):
        def value(points):
            seen[name] += len(points)
            return waves(2)(points) + shift

        return value

    found = ascend(counted("fine", 0.0), made, made.spread(8, 0), rough=counted("rough", 0.01))
    assert float(found.values[0]) == pytest.approx(float(waves(2)(tensor(*product(values, repeat=3))).max()))
    assert seen == {"fine": mixed_ascent.CHUNK, "rough": 1008}


def test_whole_numbers_are_relaxed_first():
    # 1001 x 3 combinations: a ridge along a = 610 + 100 c, highest at c = 2.5.
    made = region({0: tuple(range(1001)), 1: (0, 1, 2)}, None, (0.0, 0.0, 0.0), (1000.0, 2.0, 4.0))

    def value(points):
        a, b, c = points.unbind(-1)
        return -((a - 610 - 100 * c) / 50).square() - (c - 2.5033).square() - 0.1 * (b - 1).square()

    found = ascend(value, made, made.spread(32, 0))
    a, c = torch.arange(850, 871), torch.linspace(2.4, 2.6, 2001, dtype=DOUBLE)
    points = torch.cartesian_prod(a.double(), torch.ones(1, dtype=DOUBLE), c)
    best = float(value(points).max())
    assert float(found.values[0]) >= best - 1e-6
    assert made.units(found.points[0]).tolist()[:2] == [860.0, 1.0]


@pytest.mark.parametrize("ascended", [64, 0])
def test_holes_are_turned_back_from(monkeypatch, ascended):
    monkeypatch.setattr(mixed_ascent, "ASCENDED", ascended)
    made = region(THREES)

    def torn(points):
        return torch.where(points[..., 0] == 0.5, torch.nan, waves(0)(points))

    found = ascend(torn, made, made.spread(32, 0))
    assert bool(found.values[0].isfinite())
    without = region({**THREES, 0: (0.0, 2.0)})
    assert float(found.values[0]) >= reference(waves(0), without) - 1e-6
    with pytest.raises(NoFiniteValueError):
        ascend(lambda points: torch.nan * points.sum(-1), made, made.spread(8, 0))


@pytest.mark.parametrize("levels", [THREES, ALL])
@pytest.mark.parametrize("ascended", [64, 0])
@pytest.mark.parametrize("calls", [1, 10])
def test_a_spent_budget_ends_at_the_best_points_so_far(monkeypatch, levels, ascended, calls):
    monkeypatch.setattr(mixed_ascent, "ASCENDED", ascended)
    monkeypatch.setattr(mixed_ascent, "EVALUATED", 64 * ascended)
    made, asked, best = region(levels), 0, -torch.inf

    class Ended(Budget):
        def out(self):
            return asked >= calls

    def counted(points):
        nonlocal asked, best
        asked += 1
        values = waves(3)(points)
        best = max(best, float(values.detach().max()))
        return values

    found = ascend(counted, made, made.spread(16, 0), budget=Ended(limit_s=1.0))
    assert asked <= calls + 6
    assert float(found.values[0]) == pytest.approx(best, abs=1e-12)
    torch.testing.assert_close(waves(3)(made.units(found.points)), found.values)


def cube(*counts, free=1, limit=None):
    """A unit cube, of which the first coordinates have so many evenly spread levels."""
    size = len(counts) + free
    limits = None
    if limit is not None:
        normals = torch.ones(1, size, dtype=DOUBLE)
        limits = Polytope(tuple("abcd"[:size]), normals, torch.tensor([limit], dtype=DOUBLE))
    box = CandidateRegion.within(torch.zeros(size).double(), torch.ones(size).double(), limits)
    levels = {
        place: tuple(torch.linspace(0, 1, count, dtype=DOUBLE).tolist()) for place, count in enumerate(counts)
    }
    return with_levels(box, levels)


def wavy(points):
    """Many maxima in the last coordinate, and the more the larger the others are."""
    return torch.sin(60 * points[..., -1]) / 100 + points[..., :-1].sum(-1)


def crossed(points):
    """The same, with other maxima at other levels."""
    return wavy(points) + torch.cos(9 * points.sum(-1))


def noted(name, value, calls):
    def asked(points):
        calls.append((name, points.requires_grad, points.detach().clone()))
        return value(points)

    return asked


def sizes(calls, name, gradient):
    return [len(points) for each, wanted, points in calls if (each, wanted) == (name, gradient)]


def first(calls, name, gradient):
    return next(points for each, wanted, points in calls if (each, wanted) == (name, gradient))


def screened(calls):
    """How many points the approximation was asked for before the first ascent."""
    begun = next((place for place, each in enumerate(calls) if each[1]), len(calls))
    return sum(sizes(calls[:begun], "rough", False))


def climbed(made, value, count=8, rough=None, **settings):
    calls = []
    rough = noted("rough", value if rough is None else rough, calls)
    found = ascend(noted("fine", value, calls), made, made.spread(count, 0), rough=rough, **settings)
    return found, calls


def test_all_starts_are_tried_at_each_of_few_combinations() -> None:
    _, calls = climbed(cube(3, 3), wavy, screening_steps=2, kept=1, steps=3, sure=1)
    # Nine combinations of eight starts; of the best starts of each there are 4 * 8 // 9 = 3.
    assert screened(calls) == 72
    assert sizes(calls, "rough", True)[0] == 27
    # Eight times `kept`, and the one that is sure.
    assert sizes(calls, "fine", True)[0] == 9
    torch.testing.assert_close(first(calls, "fine", True)[0], cube(3, 3).spread(8, 0)[0])
    begun = first(calls, "rough", True)
    assert len(begun.unique(dim=0)) == len(begun)


@pytest.mark.parametrize(("count", "begun"), [(8, 1), (32, 2)])
def test_of_64_combinations_each_begins_at_its_best_starts(count, begun) -> None:
    made = cube(8, 8)
    _, calls = climbed(made, crossed, count, screening_steps=1, kept=1, steps=1)
    assert screened(calls) == 64 * count
    points = first(calls, "rough", True)
    assert len(points) == 64 * begun
    levels, counts = points[:, :2].unique(dim=0, return_counts=True)
    assert (len(levels), set(counts.tolist())) == (64, {begun})
    # At each those with the largest values: which these are depends on the levels.
    starts = made.spread(count, 0)
    for place in levels[::7]:
        here = torch.cat([place.expand(count, 2), starts[:, 2:]], -1)
        best = here[crossed(here).topk(begun).indices]
        torch.testing.assert_close(points[(points[:, :2] == place).all(-1)], best)


def test_with_more_combinations_starts_ascend_at_their_own_levels() -> None:
    made = cube(5, 13)
    _, calls = climbed(made, wavy, screening_steps=1, kept=1, steps=1)
    # Each start, and what changes of one level make of it.
    assert screened(calls) == 8 + 8 * (4 + 12)
    assert sizes(calls, "rough", True)[0] == 8


def test_of_every_combination_one_start_goes_on_before_a_second_one_of_the_best() -> None:
    made = cube(3)
    _, calls = climbed(made, wavy, 16, screening_steps=4, kept=1, steps=1)
    on = first(calls, "fine", True)
    assert on[:, 0].tolist() == [1.0, 0.5, 0.0] + [1.0] * 5
    assert float(wavy(on[0])) >= float(wavy(on[3:]).max())
    assert bool((torch.cdist(on, on) + torch.eye(8) > 1e-3).all())


def test_under_limits_twice_as_many_as_are_kept_go_on_one_by_one() -> None:
    made = cube(3, limit=1.7)
    found, calls = climbed(made, lambda points: -(points[..., -1] - 0.4).square(), 16, kept=2, sure=0)
    assert sizes(calls, "rough", True) == []
    assert set(sizes(calls, "fine", True)) == {1}
    assert bool(made.contains(found.points).all())
    # The points that were evaluated are where the ascents begin.
    known = {tuple(each) for name, _, points in calls if name == "rough" for each in points.tolist()}
    assert sum(tuple(points[0].tolist()) in known for _, wanted, points in calls if wanted) == 4


def test_up_to_4096_combinations_without_another_coordinate_are_evaluated() -> None:
    def value(points):
        return torch.sin(5 * points).sum(-1)

    _, calls = climbed(cube(16, 16, 16, free=0), value)
    assert sum(sizes(calls, "rough", False)) == 4096 + 8
    assert max(sizes(calls, "rough", False)) == 512
    assert sizes(calls, "fine", False)[0] == 512
    _, calls = climbed(cube(17, 241, free=0), value)
    assert sum(sizes(calls, "rough", False)) < 4097


def test_up_to_512_points_are_evaluated_without_the_approximation() -> None:
    found, calls = climbed(cube(7, 8, 9, free=0), lambda points: torch.sin(5 * points).sum(-1), kept=3)
    assert sizes(calls, "rough", False) == []
    assert sizes(calls, "fine", False)[0] == 512
    # As many as there were starts, all different and best first.
    assert len(found.points) == 8
    assert len(found.points.unique(dim=0)) == 8
    assert bool((found.values.diff() <= 0).all())


@pytest.mark.parametrize("count", [1, 2, 511, 512, 513, 1200])
def test_many_points_are_evaluated_in_parts_of_512(count) -> None:
    made, calls = cube(3), []
    points = made.spread(count, 0)
    function = UnitAcquisition(noted("fine", wavy, calls), made, UNLIMITED)
    torch.testing.assert_close(mixed_ascent.evaluated(function, points), wavy(points), rtol=0, atol=0)
    assert sizes(calls, "fine", False) == [512] * (count // 512) + [count % 512] * (count % 512 > 0)
    assert function.evaluations == 0


@pytest.mark.parametrize("counts", [(3,), (30,), (5, 13)])
def test_where_nothing_is_gained_the_ascent_ends_soon(counts) -> None:
    made = cube(*counts)
    found, calls = climbed(made, lambda points: -(points[..., -1] - 0.4).square(), screening_steps=3, kept=2)
    # No level is better than another: those of the starts stay.
    assert float(found.values[0]) == pytest.approx(0.0, abs=1e-8)
    assert len(sizes(calls, "fine", True)) <= 14
    # Only the best two ascend once more.
    assert sizes(calls, "fine", True)[-1] <= 2


def test_what_is_flat_stays_at_the_levels_and_ends_at_once() -> None:
    made = cube(5, 13)
    begun = made.spread(8, 0)
    found, calls = climbed(made, lambda points: 0 * points.sum(-1), screening_steps=2, kept=8, steps=5)
    for point in found.points:
        assert bool((begun == point).all(-1).any())
    assert len(calls) <= 20


@pytest.mark.parametrize("made", [cube(3), cube(30), cube(30, 3)])
def test_ends_are_apart_and_ordered_and_the_evaluations_are_those_of_gradients(made) -> None:
    found, calls = climbed(made, wavy, 8, screening_steps=3, kept=2, steps=20)
    same = (found.points[:, None, :-1] == found.points[:, :-1]).all(-1)
    near = same & (torch.cdist(found.points[:, -1:], found.points[:, -1:]) <= 1e-3)
    assert int(near.sum()) == len(found.points)
    assert bool(made.contains(found.points).all())
    assert bool((found.values.diff() <= 0).all())
    torch.testing.assert_close(wavy(made.units(found.points)), found.values)
    counted = sum(sizes(calls, "fine", True)) + sum(sizes(calls, "rough", True))
    assert found.evaluations == counted


def test_the_ends_themselves_are_in_order_of_their_values() -> None:
    for made in (cube(3), cube(5, 13), cube(*[2] * 13, free=0)):
        function, starts = UnitAcquisition(crossed, made, UNLIMITED), made.spread(8, 0)
        _, values = mixed_ascent.mixed_ascent(function, function, made, starts, 5, 0, 4, 0)
        assert len(values) > 2
        assert bool((values.diff() <= 0).all())


def test_the_best_ascend_again_until_that_gains_nothing() -> None:
    # A curved ridge, two steps at a time, on two levels of which the second is better by 1.
    def ridge(points):
        level, a, b = points.unbind(-1)
        return level - (0.7 - a).square() - (b - a.square()).square()

    made, calls = cube(2, free=2), []
    starts = torch.tensor([[0.0, 0.1, 0.9], [1.0, 0.1, 0.9]], dtype=DOUBLE)
    found = ascend(noted("fine", ridge, calls), made, starts, steps=2, screening_steps=0, kept=2)
    assert float(found.values[0]) > 1 - 1e-3
    assert len(calls) < 200


def test_at_most_four_levels_are_changed_between_two_ascents() -> None:
    # Of thirteen coordinates the approximation changes one, and the function the others, four at a time.
    made, calls = cube(*[2] * 13, free=0), []
    found = ascend(noted("fine", lambda points: points.sum(-1), calls), made, torch.zeros(1, 13).double())
    assert found.points.tolist() == [[1.0] * 13]
    assert sizes(calls, "fine", False) == [1, 13, 1, *[13, 13, 13, 13, 1] * 3, 13]


def test_without_steps_levels_alone_are_changed() -> None:
    made = cube(5, 13)
    begun = made.spread(8, 0)
    found, calls = climbed(made, wavy, screening_steps=0, steps=0, kept=1)
    assert sizes(calls, "fine", True) == sizes(calls, "rough", True) == []
    assert found.points[0, :2].tolist() == [1.0, 1.0]
    assert set(found.points[:, 2].tolist()) <= set(begun[:, 2].tolist())


BOX_LOWER, BOX_UPPER = (
    torch.tensor([0.0, -1.0], dtype=torch.float64),
    torch.tensor([2.0, 3.0], dtype=torch.float64),
)
BOX = CandidateRegion.within(BOX_LOWER, BOX_UPPER, None)


def starts(count=8, region=BOX):
    return region.spread(count, 0)


def bowl(*centre):
    at = torch.tensor(centre, dtype=torch.float64)
    return lambda points: -(points - at).square().sum(-1)


def hills(points):
    low, high = ((points[..., 0] - centre).square() for centre in (0.3, 1.7))
    return (-20 * low).exp() + 1.5 * (-20 * high).exp() - 0.1 * points[..., 1].square()


def test_the_top_within_the_box_is_reached_from_every_start():
    found = ascend(bowl(0.7, 1.2), BOX, starts(), kept=8)
    torch.testing.assert_close(
        BOX.units(found.points),
        torch.tensor([[0.7, 1.2]], dtype=torch.float64).expand(8, 2),
        atol=1e-3,
        rtol=0,
    )
    assert found.evaluations >= 8


def test_a_top_outside_leads_to_the_border():
    found = ascend(bowl(3.0, 1.0), BOX, starts())
    assert BOX.units(found.points)[0].tolist() == pytest.approx([2.0, 1.0], abs=1e-3)
    assert float(found.values[0]) == pytest.approx(-1.0, abs=1e-5)


def test_of_two_hills_the_higher_comes_first():
    found = ascend(hills, BOX, starts(16), screening_steps=4, kept=6)
    assert BOX.units(found.points)[0].tolist() == pytest.approx([1.7, 0.0], abs=1e-2)
    assert bool((found.values.diff() <= 0).all())


def test_limits_are_kept():
    # a + b <= 1, with the top at (1, 1).
    limits = Polytope(("a", "b"), torch.ones(1, 2, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    region = CandidateRegion.within(BOX_LOWER, BOX_UPPER, limits)
    found = ascend(bowl(1.0, 1.0), region, starts(8, region))
    assert region.units(found.points)[0].tolist() == pytest.approx([0.5, 0.5], abs=1e-4)
    assert bool(region.contains(found.points).all())


def test_the_first_starts_go_on_whatever_comes_of_them():
    low = BOX.unit(torch.tensor([[0.3, 0.0]], dtype=torch.float64))

    def reached(sure):
        found = ascend(hills, BOX, torch.cat([low, starts(16)]), screening_steps=4, kept=1, sure=sure)
        return BOX.units(found.points)[:, 0].tolist()

    assert reached(0) == pytest.approx([1.7], abs=1e-2)
    assert reached(1) == pytest.approx([1.7, 0.3], abs=1e-2)


def test_holes_in_a_box_are_turned_back_from():
    def torn(points):
        values = bowl(0.7, 1.2)(points)
        return torch.where(points[..., 0] > 1.0, torch.nan * values, values)

    some = starts(16)
    found = ascend(torn, BOX, some)
    known = torn(BOX.units(some))
    assert bool(found.values.isfinite().any())
    assert float(found.values[0]) >= float(known[known.isfinite()].max())
    assert float(BOX.units(found.points)[0, 0]) <= 1.0
    with pytest.raises(ValueError, match="finite"):
        ascend(lambda points: torch.nan * points.sum(-1), BOX, starts())


def test_a_spent_budget_ends_in_a_box_at_the_best_points_so_far():
    calls = 0

    class Once(Budget):
        def out(self):
            return calls > 3

    def counted(points):
        nonlocal calls
        calls += 1
        return bowl(0.7, 1.2)(points)

    found = ascend(counted, BOX, starts(), kept=8, budget=Once(limit_s=1.0))
    assert found.values.shape == (8,)
    assert float(found.values[0]) > float(bowl(0.7, 1.2)(BOX.units(starts())).max())
    torch.testing.assert_close(bowl(0.7, 1.2)(BOX.units(found.points)), found.values)


def asked(name, value, calls):
    """A function that notes of each call its name, whether a gradient is wanted, and the number of points."""

    def noted(points):
        calls.append((name, points.requires_grad, len(points)))
        return value(points)

    return noted


def total(calls, *names):
    return sum(count for name, gradient, count in calls if gradient and name in names)


def test_the_approximation_compares_and_both_functions_are_counted() -> None:
    calls = []
    found = ascend(
        asked("fine", hills, calls), BOX, starts(16), kept=3, rough=asked("rough", hills, calls), sure=2
    )
    assert found.evaluations == total(calls, "fine", "rough")
    assert calls[0] == ("rough", True, 16)
    first = next(each for each in calls if each[0] == "fine")
    # After eight steps starts coincide at the tops.
    assert first[1]
    assert 2 < first[2] <= 5
    calls.clear()
    found = ascend(asked("fine", hills, calls), BOX, starts(16), kept=3)
    assert found.evaluations == total(calls, "fine")
    # As many starts as are kept are not compared.
    calls.clear()
    ascend(asked("fine", hills, calls), BOX, starts(4), kept=4, rough=asked("rough", hills, calls))
    assert {name for name, _, _ in calls} == {"fine"}
    assert calls[0] == ("fine", True, 4)


# A start on the lower hill is better than one at the foot of the higher one.
FOOT = BOX.unit(torch.tensor([[1.35, 0.0], [0.32, 0.0], [1.2, 2.0]], dtype=torch.float64))
LIMITED = CandidateRegion.within(
    BOX_LOWER, BOX_UPPER, Polytope(("a", "b"), torch.ones(1, 2).double(), torch.tensor([4.9]).double())
)


def worst(points):
    return -hills(points)


@pytest.mark.parametrize(("region", "screening"), [(BOX, 0), (LIMITED, 0), (LIMITED, 8)])
def test_without_steps_or_under_limits_the_starts_themselves_are_compared(region, screening) -> None:
    calls = []
    rough = asked("rough", worst, calls)
    found = ascend(hills, region, FOOT, screening_steps=screening, kept=1, rough=rough)
    assert region.units(found.points)[:, 0].tolist() == pytest.approx([0.3] * len(found.points), abs=0.03)
    assert calls == []


def test_after_a_few_steps_the_higher_hill_shows() -> None:
    found = ascend(hills, BOX, FOOT, screening_steps=8, kept=1)
    assert BOX.units(found.points)[:, 0].tolist() == pytest.approx([1.7], abs=1e-2)


def test_of_starts_that_coincide_the_better_goes_on_alone() -> None:
    # Under limits the starts that went on are among the ends: of two that are 5e-4 apart the better one.
    near = LIMITED.unit(torch.tensor([[0.2, 0.0], [0.201, 0.0], [1.0, 0.0]], dtype=torch.float64))
    found = ascend(hills, LIMITED, near, kept=3)
    assert [bool((found.points == each).all(-1).any()) for each in near] == [False, True, True]
    calls = []
    ascend(asked("fine", hills, calls), BOX, near[[0, 0, 2, 2]], screening_steps=0, kept=3)
    assert next(each for each in calls if each[1]) == ("fine", True, 2)


def test_ends_under_limits_are_inside_and_in_order_of_their_values() -> None:
    found = ascend(bowl(3.0, 4.0), LIMITED, LIMITED.spread(4, 0), kept=2)
    assert bool(LIMITED.contains(found.points).all())
    assert bool((found.values.diff() <= 0).all())
    torch.testing.assert_close(bowl(3.0, 4.0)(LIMITED.units(found.points)), found.values)


def test_undefined_points_take_no_defined_one_with_them() -> None:
    nan = float("nan")
    for points, kept in (([0.1, nan, 0.9, 0.1002], [0.1, 0.9]), ([nan, 0.1, 0.9], [nan, 0.1, 0.9])):
        found = _distinct(torch.tensor(points, dtype=torch.float64).unsqueeze(-1))
        assert found.squeeze(-1).tolist() == pytest.approx(kept, nan_ok=True)


LOWER_UNIT_ACQUISITION, UPPER_UNIT_ACQUISITION = (
    torch.tensor([0.0, -1.0], dtype=torch.float64),
    torch.tensor([2.0, 3.0], dtype=torch.float64),
)
BOX_UNIT_ACQUISITION = CandidateRegion.within(LOWER_UNIT_ACQUISITION, UPPER_UNIT_ACQUISITION, None)


def test_botorch_is_given_the_value_and_its_gradient():
    made = UnitAcquisition(hills, BOX_UNIT_ACQUISITION, UNLIMITED)
    made.begin(starts(4))
    at = starts(4).unsqueeze(1).requires_grad_(True)
    told = made(at)
    (gradient,) = torch.autograd.grad(told.sum(), at)
    plain = starts(4).requires_grad_(True)
    (wanted,) = torch.autograd.grad(hills(BOX_UNIT_ACQUISITION.units(plain)).sum(), plain)
    torch.testing.assert_close(told.detach(), hills(BOX_UNIT_ACQUISITION.units(starts(4))))
    torch.testing.assert_close(gradient[:, 0], wanted)
    assert made.evaluations == 4
    with torch.no_grad():
        torch.testing.assert_close(made(at.detach()), told.detach())
    assert made.evaluations == 4


def test_undefined_points_are_flat_and_lower_than_all_others():
    made = UnitAcquisition(lambda points: points[..., 0].log(), BOX_UNIT_ACQUISITION, UNLIMITED)
    at = BOX_UNIT_ACQUISITION.unit(
        torch.tensor([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]], dtype=torch.float64)
    ).unsqueeze(1)
    made.begin(at[:, 0])
    values = made(at.requires_grad_(True))
    (gradient,) = torch.autograd.grad(values.sum(), at)
    assert made.holes
    assert values.argmin() == 0
    assert bool(gradient[0].eq(0).all())
    assert bool(gradient[1:, 0, 0].gt(0).all())


def test_a_batch_of_undefined_points_is_lower_than_the_defined_ones_before():
    made = UnitAcquisition(lambda points: points[..., 0].log() - 3, BOX_UNIT_ACQUISITION, UNLIMITED)
    first, second = (
        BOX_UNIT_ACQUISITION.unit(torch.tensor([[low, 0.0], [low, 1.0]], dtype=torch.float64)).unsqueeze(1)
        for low in (0.5, 0.0)
    )
    made.begin(first[:, 0])
    before = made(first.requires_grad_(True))
    assert not made.holes
    assert float(made(second.requires_grad_(True)).detach().max()) < float(before.detach().min())


@pytest.mark.parametrize("limited", [False, True])
def test_each_start_ascends_at_its_own_level(limited):
    # -(a - b)^2 - .01 b^2 at a = 0, .5, 2: b = a / 1.01; with a + b <= 2.2 at a = 2 only b = .2.
    faces = Polytope(("a", "b"), torch.ones(1, 2).double(), torch.tensor([2.2]).double()) if limited else None
    region = with_levels(
        CandidateRegion.within(LOWER_UNIT_ACQUISITION, UPPER_UNIT_ACQUISITION, faces), {0: (0.0, 0.5, 2.0)}
    )

    def value(points):
        return -(points[..., 0] - points[..., 1]).square() - 0.01 * points[..., 1].square()

    begin = region.unit(torch.tensor([[0.0, 0.1], [0.5, 0.1], [2.0, -0.5]], dtype=torch.float64))
    points, values = ascended(UnitAcquisition(value, region, UNLIMITED), begin, 100)
    found = region.units(points)
    wanted = {0.0: 0.0, 0.5: 0.5 / 1.01, 2.0: 0.2 if limited else 2 / 1.01}
    assert sorted(found[:, 0].tolist()) == [0.0, 0.5, 2.0]
    for a, b in found.tolist():
        assert b == pytest.approx(wanted[a], abs=1e-3)
    torch.testing.assert_close(value(found), values)
    assert bool((values.diff() <= 0).all())


def test_limits_on_coordinates_with_levels_alone_are_left_to_the_starts():
    faces = Polytope(("a", "b"), torch.tensor([[1.0, 0.0]]).double(), torch.tensor([0.5]).double())
    region = with_levels(
        CandidateRegion.within(LOWER_UNIT_ACQUISITION, UPPER_UNIT_ACQUISITION, faces), {0: (0.0, 0.5, 2.0)}
    )
    begin = region.spread(6, 0)
    points, _ = ascended(UnitAcquisition(hills, region, UNLIMITED), begin, 100)
    assert set(region.units(points)[:, 0].tolist()) == {0.0, 0.5}
    assert region.units(points)[:, 1].tolist() == pytest.approx([0.0] * 6, abs=1e-3)


def test_a_limit_on_a_coordinate_without_levels_alone_is_kept() -> None:
    # b <= 1, of a bowl with its top at b = 2.
    faces = Polytope(("a", "b"), torch.tensor([[0.0, 2.0]]).double(), torch.tensor([2.0]).double())
    region = with_levels(
        CandidateRegion.within(LOWER_UNIT_ACQUISITION, UPPER_UNIT_ACQUISITION, faces), {0: (0.0, 0.5, 2.0)}
    )
    made = UnitAcquisition(lambda points: -(points[..., 1] - 2).square(), region, UNLIMITED)
    points, _ = ascended(made, region.spread(4, 0), 100)
    assert region.units(points)[:, 1].tolist() == pytest.approx([1.0] * 4, abs=1e-6)


def test_where_nothing_is_defined_all_is_flat_at_zero() -> None:
    made = UnitAcquisition(lambda points: torch.nan * points.sum(-1), BOX_UNIT_ACQUISITION, UNLIMITED)
    assert made(starts(3).unsqueeze(1)).tolist() == [0.0, 0.0, 0.0]
    assert made.holes
    # What is undefined later is below what was defined before, of either sign.
    for value in (5.0, -5.0):
        holed = UnitAcquisition(
            lambda points, value=value: points.log().sum(-1) * 0 + value, BOX_UNIT_ACQUISITION, UNLIMITED
        )
        at = BOX_UNIT_ACQUISITION.unit(
            torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
        ).unsqueeze(1)
        assert float(holed(at[:1])) == value
        assert not holed.holes
        assert float(holed(at[1:])) < value


def test_batches_of_batches_keep_their_shape() -> None:
    made = UnitAcquisition(hills, BOX_UNIT_ACQUISITION, UNLIMITED)
    points = starts(6)
    at = points.reshape(2, 3, 1, 2)
    torch.testing.assert_close(made(at), hills(BOX_UNIT_ACQUISITION.units(points)).reshape(2, 3))
    made.begin(points)
    told = made(at.clone().requires_grad_(True))
    torch.testing.assert_close(told.detach(), hills(BOX_UNIT_ACQUISITION.units(points)).reshape(2, 3))
    assert made.evaluations == 6


class Ended(Budget):
    """A budget that is spent after so many questions."""

    def __init__(self, questions):
        super().__init__(limit_s=1e9)
        self.questions = questions

    def out(self):
        self.questions -= 1
        return self.questions < 0


@pytest.mark.parametrize("questions", [0, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_a_spent_budget_leaves_the_best_points_as_many_as_there_were_starts(count, questions) -> None:
    seen = []

    def noted(points):
        seen.append(points.detach().clone())
        return hills(points)

    function = UnitAcquisition(noted, BOX_UNIT_ACQUISITION, Ended(questions))
    points, values = ascended(function, starts(count), 100)
    every = torch.cat(seen)
    assert len(every) == count * (questions + 1) == function.evaluations
    torch.testing.assert_close(values, hills(every).topk(count).values)
    torch.testing.assert_close(hills(BOX_UNIT_ACQUISITION.units(points)), values)
    # The next ascent with this function forgets them.
    _, again = ascended(function, starts(count), 100)
    torch.testing.assert_close(
        again, hills(BOX_UNIT_ACQUISITION.units(starts(count))).sort(descending=True).values
    )


def test_under_limits_the_starts_ascend_one_by_one_and_otherwise_together() -> None:
    faces = Polytope(("a", "b"), torch.ones(1, 2).double(), torch.tensor([2.2]).double())
    for limits, count in ((faces, 1), (None, 4)):
        region, sizes = CandidateRegion.within(LOWER_UNIT_ACQUISITION, UPPER_UNIT_ACQUISITION, limits), []

        def noted(points, sizes=sizes):
            if points.requires_grad:
                sizes.append(len(points))
            return hills(points)

        points, values = ascended(UnitAcquisition(noted, region, UNLIMITED), region.spread(4, 0), 100)
        assert sizes[0] == max(sizes) == count
        assert points.shape == (4, 2)
        assert bool((values.diff() <= 0).all())
