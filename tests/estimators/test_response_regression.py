"""Regressions with units and scales: the weights are those of generalised least squares, and what was put
into the rows is found again."""

import pytest
import torch

from rehearsal_torch.estimators.response_regression import WIDEST, ResponseRegression, _Column, sampled_rows
from rehearsal_torch.seeding import generator

SMALL = {"frequencies": 20, "evidence_rows": 100, "iterations": 8}


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def function(inputs):
    return (torch.sin(1.5 * inputs[:, :1]) + 0.5 * inputs[:, 1:2]).sum(-1, keepdim=True)


def fitted(inputs, outputs, units=None, **settings):
    made = ResponseRegression(**{**SMALL, **settings})
    made.solve(inputs, outputs, *(() if units is None else (units,)))
    return made


def of_units(number, size, share, spread=0.5, seed=0):
    """Inputs, outputs and units: b_u has `share` times the variance of e."""
    inputs, units = drawn(number * size, 2, seed=seed), torch.arange(number * size) % number
    own = share**0.5 * drawn(number, 1, seed=seed + 1)[units]
    noise = spread * (own + drawn(number * size, 1, seed=seed + 2))
    return inputs, function(inputs) + noise, units.double()


@pytest.mark.parametrize("share", [0.25, 1.0, 3.0])
def test_the_share_of_the_variance_between_units_is_found(share):
    made = fitted(*of_units(200, 6, share))
    # The share of 200 units is known to some tenth of itself, and .03 more by 6 rows each.
    assert float(made.shared) == pytest.approx(share, rel=0.25, abs=0.05)
    assert float(made.noise.sqrt() * made.scale) == pytest.approx(0.5, rel=0.1)
    assert float(made.scales(torch.zeros(2, dtype=torch.float64))) == pytest.approx(
        0.5 * (1 + share) ** 0.5, rel=0.1
    )


def test_what_depends_on_shared_rows_is_known_less_well():
    inputs, outputs, units = of_units(40, 10, 2.0)
    one, other = fitted(inputs, outputs, units), fitted(inputs, outputs)
    at = torch.zeros(1, 2, dtype=torch.float64).expand(400, 1, 2)
    spreads = [float(each.drawn(each.draws(400, generator(0)), at).std()) for each in (one, other)]
    assert spreads[0] > 1.5 * spreads[1]


def test_a_scale_that_depends_on_an_input_is_found():
    inputs = drawn(1500, 2)
    spread = (0.4 * inputs[:, :1]).exp() * 0.5
    made = fitted(inputs, function(inputs) + spread * drawn(1500, 1, seed=1))
    assert made.varying
    at = torch.tensor([[-1.5, 0.0], [0.0, 0.0], [1.5, 0.0]], dtype=torch.float64)
    found = made.scales(at)[:, 0]
    assert found.tolist() == pytest.approx((0.5 * (0.4 * at[:, 0]).exp()).tolist(), rel=0.2)
    assert float(made.residuals.std()) == pytest.approx(1.0, abs=0.03)
    # The scale is not continued without a bound.
    far = made.scales(torch.tensor([[80.0, 0.0]], dtype=torch.float64))
    middle = float((0.5 * made.log_scale[0, 0]).exp() * made.scale)
    assert float(far) <= WIDEST * middle * (1 + 1e-9)


def test_coefficients_are_those_of_generalised_least_squares():
    inputs, outputs, units = of_units(30, 5, 1.5)
    made = fitted(inputs, outputs, units)
    target, groups = ((outputs - made.location) / made.scale)[:, 0], units.long()
    column = _Column(made, inputs, target, 0, groups)
    scales, column.shared = (0.3 * inputs[:, 0]).exp(), 0.7
    column._solve(1 / scales.square())
    same = (groups[:, None] == groups).double()
    covariance = scales[:, None] * scales * (torch.eye(150, dtype=torch.float64) + column.shared * same)
    features = made.features(inputs, 0)
    whitened = torch.linalg.solve(covariance, features)
    moment = whitened.mT @ features
    moment.diagonal().add_(made.amplitudes[0, 3])
    torch.testing.assert_close(column.root @ column.root.mT, moment, rtol=1e-8, atol=1e-8)
    dense = torch.linalg.solve(moment, whitened.mT @ target)
    torch.testing.assert_close(column.solved, dense, rtol=1e-6, atol=1e-8)


def test_weights_of_the_pool_are_those_of_whole_units():
    inputs, outputs, units = of_units(12, 5, 1.0)
    made = fitted(inputs, outputs, units)
    weights = made.responses(4000, generator(0)).weights
    assert weights.shape == (4000, 60)
    assert weights.sum(-1).tolist() == pytest.approx([1.0] * 4000)
    by_unit = torch.stack([weights[:, units == unit] for unit in range(12)])
    assert torch.equal(by_unit, by_unit[..., :1].expand_as(by_unit))
    # Dirichlet with 12 ones: mean 1 / 12, variance 11 / (144 * 13).
    sums = by_unit.sum(-1)
    assert sums.mean(-1).tolist() == pytest.approx([1 / 12] * 12, rel=0.08)
    assert float(sums.var(-1).mean()) == pytest.approx(11 / (144 * 13), rel=0.08)


def test_whole_rows_are_drawn_by_their_weights_one_from_each_stratum():
    pool = torch.stack((torch.arange(5.0), -torch.arange(5.0)), -1).double()[torch.tensor([3, 0, 4, 1, 2])]
    weights = torch.tensor([[0.1, 0.4, 0.0, 0.2, 0.3], [0.2] * 5], dtype=torch.float64)
    rows = sampled_rows(pool, weights, 1000, generator(0))
    assert rows.shape == (2, 1000, 2)
    assert torch.equal(rows[..., 0], -rows[..., 1])
    shares = torch.stack([(rows[..., 0] == value).double().mean(-1) for value in range(5)], -1)
    # Values 0 to 4 have the weights of the places 1, 3, 4, 0, 2; each stratum is a thousandth.
    expected = weights[:, [1, 3, 4, 0, 2]]
    assert float((shares - expected).abs().max()) <= 0.0025
    # In an order of their own, not sorted.
    assert not torch.equal(rows[0, :, 0], rows[0, :, 0].sort().values)
    assert not torch.equal(rows[0, :, 0], rows[1, :, 0])


@pytest.mark.parametrize("seed", range(4))
def test_one_scale_stays_one(seed):
    inputs = drawn(600, 2, seed=10 * seed)
    made = fitted(inputs, function(inputs) + 0.5 * drawn(600, 1, seed=10 * seed + 1))
    assert not made.varying
    assert made.scales(inputs[:3]).unique().numel() == 1
    assert float(made.scales(inputs[:1])) == pytest.approx(0.5, rel=0.1)


def test_it_is_read_again_with_its_units():
    inputs, outputs, units = of_units(12, 5, 1.0)
    made, again = fitted(inputs, outputs, units), ResponseRegression(**SMALL)
    again.load_state_dict(made.state_dict())
    assert again.faults() == []
    one, other = (each.responses(5, generator(3)) for each in (made, again))
    assert torch.equal(one.functions, other.functions)
    assert torch.equal(one.weights, other.weights)
    assert torch.equal(made.scales(inputs), again.scales(inputs))
