"""Statistics of rows in blocks: those of the same rows in memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.tables.block_statistics import columns_of, moments, rows_at
from rehearsal_torch.data.tables.blocks import in_blocks


def normal(rows, columns=3, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def blocked(values, rows):
    return in_blocks((values,), rows).map(lambda _, each: each[0])


@given(
    rows=st.integers(2, 40),
    size=st.integers(1, 45),
    shift=st.sampled_from([0.0, 1e8]),
    correction=st.sampled_from([0, 1]),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_moments_are_those_of_all_rows(rows, size, shift, correction):
    values = normal(rows, seed=rows) + shift
    mean, spread = moments(blocked(values, size), correction)
    torch.testing.assert_close(mean, values.mean(0), rtol=1e-14, atol=1e-13)
    # Beside a mean of 1e8, the rows themselves have an error of 1e-8.
    torch.testing.assert_close(
        spread, values.std(0, correction=correction), rtol=1e-7 if shift else 1e-13, atol=0
    )


def test_one_block_has_the_moments_of_its_rows_to_the_last_bit():
    values = normal(1001)
    mean, spread = moments(blocked(values, 1001), 1)
    assert torch.equal(mean, values.mean(0))
    assert torch.equal(spread, values.std(0))


@given(rows=st.integers(1, 30), size=st.integers(1, 31), data=st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_rows_come_in_the_order_of_their_places(rows, size, data):
    places = torch.tensor(data.draw(st.lists(st.integers(0, rows - 1), max_size=12)), dtype=torch.long)
    first, second = normal(rows), torch.arange(rows)
    made = []
    blocks = in_blocks((first, second), size).map(lambda place, each: made.append(place) or each)
    found = rows_at(blocks, places)
    assert torch.equal(found[0], first[places])
    assert torch.equal(found[1], second[places])
    assert len(made) <= max(1, len({int(place) // size for place in places})), "others are not made"


@pytest.mark.parametrize("size", [4, 100])
def test_rows_that_there_are_not_are_refused(size):
    for place in (-1, 10):
        with pytest.raises(IndexError, match=r"expected places in 0 ... 9; got"):
            rows_at(in_blocks((normal(10),), size), torch.tensor([0, place]))


@pytest.mark.parametrize("size", [4, 100])
def test_columns_are_those_of_all_rows(size):
    values = normal(10)
    assert torch.equal(columns_of(blocked(values, size), [2, 0]), values[:, [2, 0]])
