import torch

from rehearsal_torch.data.scaling import Standardise


def test_columns_come_back_and_have_mean_zero_and_deviation_one():
    values = (
        torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        * torch.tensor([1.0, 5.0, 0.1])
        + 3
    )
    scaler = Standardise(("a", "b", "c"))
    scaler.solve(values)
    shown = scaler.shown(("c", "a"), values[:, [2, 0]])
    assert torch.allclose(shown.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(shown.std(0, correction=0), torch.ones(2, dtype=torch.float64))
    assert torch.allclose(scaler.units(("c", "a"), shown), values[:, [2, 0]])
    assert torch.equal(scaler.ranges(("b",))[1], values[:, 1:2].amax(0))
    assert float((values[:, 1] <= scaler.deciles(("b",))[0]).double().mean()) == 0.1


def test_a_constant_column_stays_finite():
    scaler = Standardise(("a",))
    scaler.solve(torch.full((5, 1), 7.0))
    assert scaler.shown(("a",), torch.tensor([[8.0]])).tolist() == [[1.0]]
