import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data import table as tables
from rehearsal_torch.data.records import content_order
from rehearsal_torch.data.table import Table
from tests.toys.second_device import second_device


def table() -> Table:
    altered = torch.zeros(3, 2, dtype=torch.bool)
    altered[1, 0] = True
    return Table(("a", "b"), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), altered)


def test_untouched_rows_are_those_in_which_no_named_cell_was_set():
    assert table().unaltered(("a",)).values.tolist() == [[1, 2], [5, 6]]
    assert len(table().unaltered(("b",))) == 3
    assert not table().unaltered(("a",)).altered.any()


def test_a_table_goes_to_a_device_and_back():
    one = table()
    assert one.to("cpu") is one
    with second_device() as device:
        there = one.to(device)
        assert {there.values.device, there.altered.device} == {device}
        assert there.to(device) is there
        back = there.to("cpu")
    assert back.names == one.names
    assert torch.equal(back.values, one.values)
    assert torch.equal(back.altered, one.altered)


def test_fingerprints_tell_names_values_and_alterations_apart():
    print_ = table().fingerprint()
    assert print_ == table().fingerprint()
    assert len(print_) == 64
    others = [
        Table(("a", "c"), table().values, table().altered),
        Table(("a", "b"), table().values + 1e-3, table().altered),
        Table.observed(("a", "b"), table().values),
    ]
    assert len({print_, *(other.fingerprint() for other in others)}) == 4
    assert Table(("a", "b"), table().values.double(), table().altered).fingerprint() == print_


def test_fingerprints_are_equal_on_machines_that_round_differently():
    values = torch.randn(500, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = values * torch.tensor([1e-6, 1.0, 1e9], dtype=torch.float64)
    last_bits = 1 + 2e-16 * torch.randn(
        500, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    one, other = (Table.observed(("a", "b", "c"), each) for each in (values, values * last_bits))
    assert not torch.equal(one.values, other.values)
    assert one.fingerprint() == other.fingerprint()
    assert one.fingerprint() != Table.observed(("a", "b", "c"), values * (1 + 1e-6)).fingerprint()


def test_the_fingerprint_does_not_depend_on_how_many_rows_are_hashed_at_a_time(monkeypatch):
    rows = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = Table.observed(("a", "b"), rows).fingerprint()
    monkeypatch.setattr(tables, "ROWS", 7)
    assert Table.observed(("a", "b"), rows).fingerprint() == whole


def _columns(stream: np.random.Generator, rows: int) -> list[np.ndarray]:
    """Two continuous columns, a rounded one with gaps, counts, and two of two values."""
    gaps = np.where(stream.random(rows) < 0.1, np.nan, stream.normal(size=rows).round(1))
    two = [stream.integers(0, 2, rows).astype(float) for _ in range(2)]
    return [stream.normal(size=rows), stream.normal(size=rows), gaps, stream.poisson(2.0, rows) + 0.0, *two]


@given(st.integers(0, 2**32), st.integers(20, 60))
def test_the_same_rows_come_in_the_same_order(seed, rows):
    stream = np.random.default_rng(seed)
    columns = _columns(stream, rows)
    before = np.stack(columns, -1)[content_order(columns)]
    places, order = stream.permutation(rows), stream.permutation(len(columns))
    units = 2.0 ** stream.integers(-40, 40, len(columns))
    altered = [column[places] * unit for column, unit in zip(columns, units, strict=True)]
    after = np.stack(columns, -1)[places][content_order([altered[place] for place in order])]
    assert np.array_equal(before, after, equal_nan=True)


def test_which_of_two_values_is_the_larger_does_not_matter():
    columns = _columns(np.random.default_rng(0), 200)
    other = [1 - column if len(np.unique(column)) == 2 else column for column in columns]
    assert len(np.unique(columns[-1])) == 2
    assert np.array_equal(content_order(columns), content_order(other))
