"""Ascents with levels against every combination, with the other coordinate on a dense grid."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.finite import NoFiniteValueError
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.trials import mixed_ascent
from rehearsal_torch.search.trials.box_ascent import ascend
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.mixed_region import with_levels
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


@pytest.mark.nightly
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


@pytest.mark.parametrize("levels", [THREES, ALL, {2: tuple(range(5))}])
@pytest.mark.parametrize("ascended", [64, 0])
@pytest.mark.parametrize("calls", [1, 3, 10])
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


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    offset=st.none() | st.floats(-0.9, 6.0),
    ascended=st.sampled_from([0, 64]),
)
def test_ends_are_levels_within_the_limits_and_no_worse_than_the_starts(seed, counts, offset, ascended):
    draws = torch.Generator().manual_seed(seed)
    levels = {
        place: tuple(
            sorted(
                {
                    LOWER[place],
                    *(
                        LOWER[place]
                        + (UPPER[place] - LOWER[place]) * torch.rand(count, generator=draws).double()
                    ).tolist(),
                }
            )
        )
        for place, count in enumerate(counts)
    }
    made = region(levels, None if offset is None else below(offset))
    starts, before = made.spread(8, seed), mixed_ascent.ASCENDED
    mixed_ascent.ASCENDED = ascended
    try:
        found = ascend(waves(seed), made, starts)
    finally:
        mixed_ascent.ASCENDED = before
    actions = made.units(found.points)
    for place, values in levels.items():
        assert set(actions[:, place].tolist()) <= set(values)
    assert bool(made.contains(found.points).all())
    assert float(found.values[0]) >= float(waves(seed)(made.units(starts)).max()) - 1e-9
