"""The matrix-normal inverse-Wishart law against other computations of the same numbers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.stats import multivariate_t

from rehearsal_torch.estimators import bayesian_regression
from rehearsal_torch.estimators.bayesian_regression import LOOSE, ConjugateRegression


def data(rows=40, seed=0, parents=3):
    stream = np.random.default_rng(seed)
    inputs = stream.normal(size=(rows, parents)) * [1.0, 100.0, 0.01][:parents] + [5.0, 1000.0, 0.0][:parents]
    noise = stream.multivariate_normal([0, 0], [[0.5, 0.3], [0.3, 0.4]], rows)
    values = 7 + inputs @ np.array([[1.0, -1.0], [0.02, 0.0], [30.0, 50.0]])[:parents] + noise
    return torch.from_numpy(inputs), torch.from_numpy(values)


def solved(parents, values, first=15, **settings):
    made = ConjugateRegression(parents.shape[1], values.shape[1], **settings)
    early = torch.arange(len(values)) < first
    made.solve(parents, values, early.double(), ~early)
    return made


def one_by_one(parents, values, first=15, **settings):
    """The forecasts of fits to ever more rows."""
    logs = []
    for row in range(first, len(values)):
        made = solved(parents[:row], values[:row], first, **settings)
        logs.append(float(made.log_predictive(parents[row], values[row])))
    return torch.tensor(logs, dtype=torch.float64)


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_the_score_is_what_the_rows_before_foresaw(forgetting):
    parents, values = data()
    logs = one_by_one(parents, values, forgetting=forgetting)
    fading = forgetting ** torch.arange(len(logs) - 1, -1, -1, dtype=torch.float64)
    assert float(solved(parents, values, forgetting=forgetting).score) == pytest.approx(
        float(logs @ fading), rel=1e-9
    )


@settings(max_examples=15, deadline=None, derandomize=True)
@given(some.permutations(range(15, 40)))
def test_the_order_of_rows_does_not_matter_where_nothing_is_forgotten(order):
    parents, values = data()
    place = [*range(15), *order]
    assert float(solved(parents[place], values[place]).score) == pytest.approx(
        float(solved(parents, values).score), rel=1e-9
    )


@settings(max_examples=15, deadline=None, derandomize=True)
@given(some.lists(some.floats(0.01, 100.0), min_size=5, max_size=5), some.floats(-50, 50))
def test_units_change_densities_by_their_jacobian_alone(units, shift):
    parents, values = data()
    factor = torch.tensor(units, dtype=torch.float64)
    other = solved(parents * factor[:3] + shift, values * factor[3:] - shift)
    assert float(other.score) == pytest.approx(
        float(solved(parents, values).score) - 25 * math.log(units[3] * units[4]), rel=1e-6
    )


def test_one_prior_is_foreseen_by_a_multivariate_t():
    parents, values = data()
    made = solved(parents, values, precisions=(0.1,), noises=(0.01,))
    rows = (torch.cat([parents, values], -1) - made.location) / made.scale
    design, targets = (
        torch.cat([torch.ones(40, 1, dtype=torch.float64), rows[:, :3]], -1).numpy(),
        rows[:, 3:].numpy(),
    )
    prior = np.diag([LOOSE, 0.1, 0.1, 0.1])
    precision = prior + design.T @ design
    middle = np.linalg.solve(precision, design.T @ targets)
    scatter = 3 * 0.01 * np.eye(2) + targets.T @ targets - middle.T @ precision @ middle
    new = np.concatenate([[1.0], [0.3, -0.2, 0.5]])
    freedom = 3 + 40 - 2 + 1
    law = multivariate_t(
        middle.T @ new, scatter * (1 + new @ np.linalg.solve(precision, new)) / freedom, df=freedom
    )
    shown = made.location[:3] + made.scale[:3] * torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    for value in ([0.1, 0.4], [-1.0, 2.0]):
        raw = made.location[3:] + made.scale[3:] * torch.tensor(value, dtype=torch.float64)
        assert float(made.log_predictive(shown, raw)) == pytest.approx(
            law.logpdf(value) - float(made.scale[3:].log().sum()), rel=1e-9
        )


def test_draws_and_forecasts_are_one_law():
    parents, values = data(rows=20)
    made = solved(parents, values, first=10)
    assert 0.02 < float(made.mixture_weights.max()) < 0.98, "several priors have a share"
    weights, intercept, covariance = made.draw(40_000, torch.Generator().manual_seed(0))
    for row in (0, 13):
        law = torch.distributions.MultivariateNormal(intercept + parents[row] @ weights, covariance)
        logs = law.log_prob(values[row])
        average = torch.logsumexp(logs, 0) - math.log(40_000)
        assert float(made.log_predictive(parents[row], values[row])) == pytest.approx(
            float(average), abs=0.05
        )
    again = made.draw(40_000, torch.Generator().manual_seed(0))
    assert all(
        torch.equal(one, other) for one, other in zip(again, (weights, intercept, covariance), strict=True)
    )


def test_a_basis_may_be_worth_less():
    parents, values = data()
    made = ConjugateRegression(3, 2)
    made.solve(
        parents, values, torch.full((40,), 0.1, dtype=torch.float64), torch.zeros(40, dtype=torch.bool)
    )
    assert float(made.count) == pytest.approx(4.0)
    assert float(made.score) == 0.0
    assert (
        made.draw(4000, torch.Generator().manual_seed(0))[0].std(0)
        > solved(parents, values).draw(4000, torch.Generator().manual_seed(0))[0].std(0)
    ).all()


def test_a_state_that_is_no_law_is_named():
    made = solved(*data())
    assert made.faults() == []
    made.mixture_weights = torch.zeros_like(made.mixture_weights)
    assert made.faults() == ["mixture_weights: expected numbers of at least 0, some of them above it"]
    made = solved(*data())
    made.scatter = -made.scatter
    assert made.faults() == ["scatter and count: expected a diagonal above 0, and a count of rows"]


def test_rows_may_be_foreseen_in_pieces(monkeypatch):
    parents, values = data()
    whole = solved(parents, values, forgetting=0.8)
    monkeypatch.setattr(bayesian_regression, "STEPS", 7)
    pieces = solved(parents, values, forgetting=0.8)
    assert float(pieces.score) == pytest.approx(float(whole.score), rel=1e-12)
    assert torch.allclose(pieces.mixture_weights, whole.mixture_weights, rtol=1e-9)


def test_hard_rows_are_no_trouble():
    parents, values = data()
    parents[:, 1] = 3.0
    parents[:, 2] = 2 * parents[:, 0]
    exact = torch.cat([parents[:, :1], values[:, :1]], -1)
    made = solved(parents, exact)
    drawn = made.draw(500, torch.Generator().manual_seed(0))
    assert all(torch.isfinite(each).all() for each in (*drawn, made.score))
    assert (torch.linalg.eigvalsh(drawn[2]) > 0).all()


def test_draws_of_two_equations_are_independent():
    # Members of the mixture must not come in the same order everywhere.
    parents, values = data(rows=20)
    one, other = (
        solved(parents, values[:, [column]], first=10).draw(20_000, torch.Generator().manual_seed(column))
        for column in (0, 1)
    )
    both = torch.stack([one[2].log().flatten(), other[2].log().flatten(), one[0][:, 0, 0], other[0][:, 0, 0]])
    correlation = torch.corrcoef(both)
    assert (correlation[[0, 0, 2, 2], [1, 3, 1, 3]].abs() < 0.03).all()
