import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data import scaling
from rehearsal_torch.data.scaling import Rescale, Standardise, quantiles
from tests.toys.second_device import second_device


def solved(rows: torch.Tensor, logarithms: tuple[str, ...] = ()) -> Rescale:
    scaler = Rescale(tuple("abc"[: rows.shape[1]]), logarithms)
    scaler.solve(rows)
    return scaler


@given(seed=st.integers(0, 1000), size=st.floats(1e-3, 1e5), logged=st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_training_rows_fill_the_box_and_come_back(seed: int, size: float, logged: bool):
    rows = size * torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    scaler = solved(rows, ("b",) if logged else ())
    boxed = scaler.scale(rows)
    assert torch.allclose(boxed.amin(0), torch.full((3,), -0.5, dtype=torch.float64))
    assert torch.allclose(boxed.amax(0), torch.full((3,), 0.5, dtype=torch.float64))
    assert torch.allclose(scaler.unscale(boxed), rows, rtol=1e-9)


def test_a_moved_scaler_scales_where_the_values_are():
    rows = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    here = solved(rows, ("a",))
    with second_device() as device:
        there = solved(rows, ("a",)).to(device)
        for values in (rows, rows.to(device)):
            boxed = there.scale(values)
            assert boxed.device == values.device
            assert torch.equal(boxed.cpu(), here.scale(rows))
            assert torch.equal(there.unscale(boxed).cpu(), here.unscale(here.scale(rows)))


def test_columns_that_take_no_logarithm_are_refused():
    with pytest.raises(ValueError, match="values above -1"):
        solved(torch.tensor([[-1.0], [2.0]]), ("a",))
    with pytest.raises(KeyError, match="no column"):
        Rescale(("a",), ("b",))


def test_own_ranges_stay_as_they_are_and_impossible_ones_are_refused():
    scaler = Rescale(("a", "b"), ("b",)).fix({"b": (0.0, 9.0), "a": (0.1, 0.7)})
    assert scaler.lower.tolist() == [0.1, 0.0]
    assert scaler.upper[0] == 0.7
    boxed = scaler.scale(torch.tensor([[0.1, 0.0], [0.7, 9.0]], dtype=torch.float64))
    assert boxed.tolist() == [[-0.5, -0.5], [0.5, 0.5]]
    for ranges, message in (
        ({"a": (0, 1)}, r"none for \['b'\]"),
        ({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, r"\['c'\] are not columns"),
        ({"a": (1, 1), "b": (0, 1)}, "a: expected a finite range"),
        ({"a": (0, float("inf")), "b": (0, 1)}, "a: expected a finite range"),
        ({"a": (0, 1, 2), "b": (0, 1)}, "a: expected a finite range"),
        ({"a": (0, 1), "b": (-2, 1)}, "above -1"),
    ):
        with pytest.raises(ValueError, match=message):
            Rescale(("a", "b"), ("b",)).fix(ranges)


def test_columns_come_back_and_have_mean_zero_and_deviation_one():
    values = (
        torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        * torch.tensor([1.0, 5.0, 0.1])
        + 3
    )
    scaler = Standardise(("a", "b", "c"))
    scaler.solve(values)
    shown = scaler.standardised(("c", "a"), values[:, [2, 0]])
    assert torch.allclose(shown.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(shown.std(0, correction=0), torch.ones(2, dtype=torch.float64))
    assert torch.allclose(scaler.units(("c", "a"), shown), values[:, [2, 0]])
    assert torch.equal(scaler.ranges(("b",))[1], values[:, 1:2].amax(0))
    assert float((values[:, 1] <= scaler.deciles(("b",))[0]).double().mean()) == 0.1


@pytest.mark.parametrize("rows", [1, 2, 9, 10, 11, 1000])
def test_quantiles_of_any_number_of_rows_are_those_of_torch(rows, monkeypatch):
    values = torch.randn(rows, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).round(
        decimals=1
    )
    levels = (0.0, 0.1, 0.5, 0.9, 1.0)
    expected = torch.quantile(values, values.new_tensor(levels), dim=0)
    assert torch.equal(quantiles(values, levels), expected)
    monkeypatch.setattr(scaling, "CELLS", 1)
    torch.testing.assert_close(quantiles(values, levels), expected, rtol=1e-15, atol=1e-15)
