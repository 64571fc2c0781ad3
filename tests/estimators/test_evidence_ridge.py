"""Ridge regression by evidence against scikit-learn's, which the released code uses."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import BayesianRidge

from rehearsal_torch.estimators.bayesian_regression import EvidenceRidge


def data(rows=30, seed=0):
    stream = np.random.default_rng(seed)
    parents = stream.normal(size=(rows, 4)) * [1.0, 5.0, 0.1, 1.0] + [2.0, 0.0, 1.0, -3.0]
    noise = stream.multivariate_normal([0, 0], [[0.2, 0.1], [0.1, 0.3]], rows)
    return torch.from_numpy(parents), torch.from_numpy(
        parents @ np.array([[1.0, 0.0], [-0.3, 0.2], [4.0, 1.0], [0.0, 0.0]]) + noise
    )


def solved(parents, values, first=10, **settings):
    made = EvidenceRidge(parents.shape[1], values.shape[1], **settings)
    early = torch.arange(len(values)) < first
    made.solve(parents, values, early.double(), ~early)
    return made


@pytest.mark.parametrize("rows", [12, 30, 200])
def test_it_is_the_bayesian_ridge_of_scikit_learn(rows):
    parents, values = data(rows)
    made = solved(parents, values[:, :1])
    shown = ((torch.cat([parents, values[:, :1]], -1) - made.location) / made.scale).numpy()
    reference = BayesianRidge().fit(shown[:, :4], shown[:, 4])
    assert np.allclose(made.posterior_mean[:, 0], reference.coef_, rtol=1e-6, atol=1e-9)
    assert np.allclose(made.spread[0] @ made.spread[0].mT, reference.sigma_, rtol=1e-5, atol=1e-9)
    assert float(made.noise) == pytest.approx(1 / reference.alpha_, rel=1e-6)
    weights, intercept, covariance = made.draw(20_000, torch.Generator().manual_seed(0))
    unit = (made.scale[4] / made.scale[:4]).numpy()
    assert np.allclose(weights[:, :, 0].T.cov(), reference.sigma_ * unit * unit[:, None], rtol=0.1, atol=1e-3)
    assert np.allclose(intercept[:, 0] + (weights[:, :, 0] @ parents.mean(0)), values[:, 0].mean()), (
        "the mean is taken for known"
    )
    assert covariance.std() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_the_score_is_what_the_rows_before_foresaw(forgetting):
    parents, values = data()
    logs = [
        float(
            solved(parents[:row], values[:row], forgetting=forgetting).log_predictive(
                parents[row], values[row]
            )
        )
        for row in range(10, 30)
    ]
    expected = sum(forgetting ** (19 - place) * each for place, each in enumerate(logs))
    assert float(solved(parents, values, forgetting=forgetting).score) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_a_table_that_grows_is_not_gone_through_again(forgetting):
    parents, values = data()
    early = torch.arange(30) < 10
    made, whole = EvidenceRidge(4, 2, forgetting), solved(parents, values, forgetting=forgetting)
    for count in (12, 20, 30):
        made.solve(parents[:count], values[:count], early[:count].double(), ~early[:count])
    assert float(made.score) == pytest.approx(float(whole.score), rel=1e-12)
    assert torch.equal(made.posterior_mean, whole.posterior_mean)
    other = values.clone()
    other[3] += 1.0
    made.solve(parents, other, early.double(), ~early)
    assert float(made.score) == float(solved(parents, other, forgetting=forgetting).score), (
        "other rows are learnt anew"
    )


def test_members_of_a_clique_share_noise():
    parents, values = data(2000)
    covariance = solved(parents, values, first=1990).draw(1, torch.Generator().manual_seed(0))[2][0]
    assert torch.allclose(covariance, torch.tensor([[0.2, 0.1], [0.1, 0.3]], dtype=torch.float64), atol=0.03)
