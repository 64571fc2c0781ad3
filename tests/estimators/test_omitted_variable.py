"""Biases of regressions that omit a cause, against their bounds."""

import pytest
import torch

from rehearsal_torch.estimators.omitted_variable import bias_factor, equal_strength, precision, strongest

ROWS = 4000


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def left(columns, known):
    """What least squares on other columns leaves."""
    known = torch.cat([torch.ones_like(known[:, :1]), known], -1)
    return columns - known @ torch.linalg.lstsq(known, columns).solution


def share(column, others, known):
    """The partial R^2 of a column with others."""
    before, after = left(column, known), left(column, torch.cat([known, others], -1))
    return float(1 - after.square().sum() / before.square().sum())


@pytest.mark.parametrize("doses", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_bias_of_an_omitted_cause_is_within_the_bound_and_attains_it_for_one_dose(doses, seed):
    x, h = normal(seed, ROWS, 2), normal(seed + 10, ROWS, 1)
    d = x @ normal(seed + 20, 2, doses) + h @ normal(seed + 30, 1, doses) + normal(seed + 40, ROWS, doses)
    y = d @ normal(seed + 50, doses, 1) + x @ normal(seed + 60, 2, 1) + 0.7 * h + normal(seed + 70, ROWS, 1)
    change = normal(seed + 80, doses)
    short = torch.linalg.lstsq(left(d, x), left(y, x)).solution[:, 0] @ change
    both = torch.cat([x, h], -1)
    full = torch.linalg.lstsq(left(d, both), left(y, both)).solution[:, 0] @ change
    treatment, outcome = share(h, d, x), share(y, h, torch.cat([x, d], -1))
    spread = float(left(y, torch.cat([x, d], -1)).square().mean().sqrt())
    size = float((change @ torch.linalg.inv(left(d, x).mT @ left(d, x) / ROWS) @ change).sqrt())
    bound = (outcome * treatment / (1 - treatment)) ** 0.5 * spread * size
    bias = abs(float(short - full))
    assert bias <= bound * (1 + 1e-9)
    if doses == 1:
        assert bias == pytest.approx(bound, rel=1e-6)


def test_the_precision_is_that_of_what_a_quadratic_leaves():
    x = normal(0, ROWS, 2)
    d = torch.stack([x[:, 0].square() + x[:, 1], x[:, 0] * x[:, 1]], -1) + normal(1, ROWS, 2)
    torch.testing.assert_close(precision(d, x), torch.eye(2, dtype=torch.float64), rtol=0.1, atol=0.05)
    assert precision(torch.cat([d[:, :1], x[:, :1]], -1), x)[1].abs().max() < 1e-3 * ROWS


def test_the_strongest_covariate_drives_both():
    x = normal(0, ROWS, 3)
    d = 0.5 * x[:, :1] + 2 * x[:, 1:2] + normal(1, ROWS, 1)
    y = torch.cat([0.5 * x[:, :1] + 0.01 * x[:, 1:2], 3 * x[:, 2:]], -1) + d + normal(2, ROWS, 2)
    found = strongest(d, x, y, ("both", "doses alone", "states alone"), ("first", "second"))
    assert found is not None
    assert (found.covariate, found.state) == ("both", "first")
    rest = x[:, 1:]
    assert found.doses == pytest.approx(share(x[:, :1], d, rest), rel=1e-6)
    assert found.explained == pytest.approx(share(y[:, :1], x[:, :1], torch.cat([rest, d], -1)), rel=1e-6)


def test_outcomes_that_are_not_always_known_count_where_they_are():
    doses, covariates = normal(0, 400, 1), normal(1, 400, 2)
    outcomes = covariates @ normal(2, 2, 2) + normal(3, 400, 2)
    outcomes[::2, 0] = torch.nan
    names, states = ("a", "b"), ("u", "v")
    found = strongest(doses, covariates, outcomes, names, states)
    for place in range(2):
        rows = ~outcomes[:, place].isnan()
        own = strongest(doses, covariates, outcomes[:, [place]], names, states[place : place + 1])
        alone = strongest(doses[rows], covariates[rows], outcomes[rows][:, [place]], names, ("it",))
        if own is not None and found.state == own.state:
            assert found == own
            assert own.explained == pytest.approx(alone.explained)


def test_equal_strengths_have_the_same_factor():
    outcome, treatment = torch.tensor([0.4, 0.3, 0.0, 1e-9]), torch.tensor([0.1, 0.3, 0.5, 1e-9])
    outcome, treatment = outcome.double(), treatment.double()
    rho = equal_strength(outcome, treatment)
    expected = (outcome * treatment / (1 - treatment)).sqrt()
    torch.testing.assert_close(bias_factor(rho), expected, rtol=1e-9, atol=1e-12)
    assert float(rho[1]) == pytest.approx(0.3)
