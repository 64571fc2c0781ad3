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
@settings(max_examples=200, deadline=None, derandomize=True)
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


@settings(max_examples=60, deadline=None, derandomize=True)
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
