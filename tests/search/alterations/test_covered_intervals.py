import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.alterations.interval_sweep import Cover, meet, spread

ENDS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), max_size=14)
GRID = torch.arange(-7, 7.01, 0.25, dtype=torch.float64)


def cover(pairs):
    left, right = (
        torch.tensor([float(pair[side]) for pair in pairs], dtype=torch.float64) for side in (0, 1)
    )
    return Cover.of(left, right)


def inside(pieces, points=GRID):
    return ((pieces[:, 0] <= points[:, None]) & (points[:, None] <= pieces[:, 1])).any(-1)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(ENDS, st.integers(1, 6))
def test_covered_points_are_those_that_counting_finds(pairs, least):
    # Whole ends: the count changes at whole numbers only, quarters see everything; coinciding ends are
    # frequent.
    pieces = cover(pairs).at_least(least)
    counts = torch.stack(
        [
            sum(((low <= GRID) & (high >= GRID)).long() for low, high in pairs)
            if pairs
            else torch.zeros(len(GRID))
        ]
    )[0]
    assert torch.equal(inside(pieces), counts >= least)
    assert (pieces[:, 0] <= pieces[:, 1]).all()
    assert (pieces[1:, 0] > pieces[:-1, 1]).all()
    point, most = cover(pairs).deepest()
    assert most == int(counts.max())
    if most:
        assert sum(low <= point <= high for low, high in pairs) == most


@settings(max_examples=25, deadline=None, derandomize=True)
@given(ENDS, ENDS, st.integers(1, 3))
def test_unions_meet_where_both_hold(one, other, least):
    first, second = cover(one).at_least(least), cover(other).at_least(least)
    assert torch.equal(inside(meet(first, second)), inside(first) & inside(second))


def test_nothing_and_less_than_one_are_read_sensibly():
    empty = cover([(2, 1), (5, 0)])
    assert empty.at_least(1).shape == (0, 2)
    assert empty.deepest()[1] == 0
    assert cover([(0, 1)]).at_least(0).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 50])
def test_points_are_spread_over_the_pieces_ends_first(count):
    pieces = torch.tensor([[0.0, 0.5], [2.0, 2.0], [3.0, 6.0]], dtype=torch.float64)
    points = spread(pieces, count)
    assert len(points) == count
    assert inside(pieces, points).all()
    if count >= 2:
        assert set(points[:2].tolist()) == {3.0, 6.0}
    if count == 50:
        # By length: six times as many in the piece that is six times as long.
        assert (points[6:] <= 0.5).double().mean() == pytest.approx(1 / 7, abs=0.05)
    assert len(spread(pieces[:0], count)) == 0


def test_coinciding_ends_count_as_covered():
    stream = np.random.default_rng(0)
    for _ in range(25):
        pairs = stream.integers(-6, 7, (stream.integers(1, 9), 2)).tolist()
        counts = sum(((low <= GRID) & (high >= GRID)).long() for low, high in pairs)
        for least in (1, 2, 3):
            pieces = cover(pairs).at_least(least)
            assert torch.equal(inside(pieces), counts >= least)
            assert (pieces[1:, 0] > pieces[:-1, 1]).all()
        point, most = cover(pairs).deepest()
        assert most == int(counts.max())
        deepest = cover(pairs).at_least(most) if most else torch.full((1, 2), torch.nan)
        assert np.array_equal(point, float(deepest[0].mean()), equal_nan=True), "the middle of the first"


def test_unions_meet_in_order_and_in_points():
    one, other = (
        torch.tensor(each, dtype=torch.float64)
        for each in ([[0.0, 1.0], [2.0, 6.0]], [[-3.0, 0.5], [1.0, 3.0], [5.0, 9.0]])
    )
    for pair in ((one, other), (other, one)):
        assert meet(*pair).tolist() == [[0.0, 0.5], [1.0, 1.0], [2.0, 3.0], [5.0, 6.0]]


@pytest.mark.parametrize(
    ("count", "points"),
    [
        (1, [3.0]),
        (2, [3.0, 6.0]),
        (3, [3.0, 6.0, 4.25]),
        (4, [3.0, 6.0, 0.0, 0.5]),
        (5, [3.0, 6.0, 0.0, 0.5, 4.25]),
        (10, [3.0, 6.0, 0.0, 0.5, 2.0, 2.0, 4.25, 5.125, 3.375, 3.8125]),
    ],
)
def test_of_few_points_the_ends_of_the_longest_pieces_come_first(count, points):
    # Then .5, .75, .25, .375 of the whole length of 3.5.
    pieces = torch.tensor([[0.0, 0.5], [2.0, 2.0], [3.0, 6.0]], dtype=torch.float64)
    assert spread(pieces, count).tolist() == points
