"""Random features: the estimator in its own features, dense, and against the exact one."""

import pytest
import torch

from rehearsal_torch.surrogates.kernel.fourier_ridge import MAX_FEATURES, FourierRidge
from rehearsal_torch.surrogates.kernel.landmarks import SEEN
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from tests.toys.confounded import fitted, points, rows

WIDTHS = [1.2, 0.9, 0.6]
DOUBLE = torch.float64


def waves(frequencies, *blocks):
    """cos and sin of w'h over sqrt(R), each by itself: (n, 2 R)."""
    scaled = torch.cat([block / width for block, width in zip(blocks, WIDTHS, strict=True)], -1)
    phase = (scaled.unsqueeze(1) * frequencies).sum(-1)
    return torch.cat([phase.cos(), phase.sin()], -1) / len(frequencies) ** 0.5


def made(covariates=1, actions=1, count=60, **more):
    examples = rows(count, covariates=covariates, actions=actions)
    more = {"features": 40, "lambda_h": 0.01, "lambda_x": 0.02, "rank": count, **more}
    return fitted(FourierRidge(fixed=WIDTHS, **more), *examples), examples


@pytest.mark.parametrize("target", [0, 1])
def test_without_covariates_it_is_ridge_regression_on_the_features(target):
    estimator, (x, u, _, a, targets, _) = made(covariates=0)
    contexts, actions = points()
    features, ridge = waves(estimator.frequencies, x, u, a), 60 * 0.01
    gram = features.T @ features + ridge * torch.eye(40, dtype=DOUBLE)
    theta = torch.linalg.solve(gram, features.T @ targets[:, target])
    prepared = estimator.prepare(contexts)
    found, unsure = (
        estimator.value(prepared, actions, target),
        estimator.std(prepared, actions, target),
    )
    dual = torch.linalg.solve(features @ features.T + ridge * torch.eye(60, dtype=DOUBLE), targets[:, target])
    amplitude = targets[:, target] @ dual / 60
    for start in range(3):
        here = waves(estimator.frequencies, contexts, u[:5], actions[start])
        torch.testing.assert_close(found[start], here @ theta, atol=1e-9, rtol=0)
        torch.testing.assert_close(here @ theta, here @ features.T @ dual, atol=1e-9, rtol=0)
        variance = amplitude * ridge * (here @ torch.linalg.solve(gram, here.T)).diagonal()
        torch.testing.assert_close(unsure[start].square(), variance, atol=1e-9, rtol=1e-6)


def test_with_covariates_the_features_are_averaged_over_them():
    """J = sum_j gamma_j theta'phi(x, u_j, a), gamma from kernel ridge in x; every row is a landmark."""
    estimator, (x, u, _, a, targets, _) = made(count=40)
    contexts, actions = points(batch=3, starts=2)
    features = waves(estimator.frequencies, x, u, a)
    theta = torch.linalg.solve(
        features.T @ features + 40 * 0.01 * torch.eye(40, dtype=DOUBLE), features.T @ targets[:, 0]
    )

    def gram(one, other):
        return (-0.5 * (torch.cdist(one, other) / WIDTHS[0]) ** 2).exp()

    gamma = torch.linalg.solve(gram(x, x) + 40 * 0.02 * torch.eye(40, dtype=DOUBLE), gram(x, contexts))
    found = estimator.value(estimator.prepare(contexts), actions)
    for start in range(2):
        for case in range(3):
            here = waves(
                estimator.frequencies,
                contexts[case].expand(40, -1),
                u,
                actions[start, case].expand(40, -1),
            )
            assert float(found[start, case]) == pytest.approx(float(gamma[:, case] @ here @ theta), abs=1e-5)


@pytest.mark.slow
def test_the_error_of_random_features_falls_with_their_root():
    examples, (contexts, actions) = rows(300), points()
    exact = fitted(ProductRidge(fixed=WIDTHS), *examples)
    wanted = exact.value(exact.prepare(contexts), actions)
    kernels, off = [], []
    for features in (100, 1600):
        several = [
            fitted(FourierRidge(fixed=WIDTHS, features=features, seed=seed), *examples) for seed in range(4)
        ]
        kernels.append(sum(each.approximation()["outcome_mean"] for each in several) / 4)
        values = [each.value(each.prepare(contexts), actions) for each in several]
        off.append(sum(float((each - wanted).square().mean()) for each in values) / 4)
    assert kernels[1] == pytest.approx(kernels[0] / 4, rel=0.2)
    assert off[1] < off[0] / 3


def test_what_was_not_measured_is_not_told():
    assert set(made(covariates=0)[0].approximation()) == {"outcome_frobenius", "outcome_mean"}
    assert set(made()[0].approximation()) == {
        "outcome_frobenius",
        "outcome_mean",
        "context_frobenius",
        "context_mean",
    }


def test_the_kept_rows_weigh_by_their_dual_coefficients_and_nearness():
    estimator, (x, u, _, a, targets, _) = made(covariates=0)
    contexts, _ = points()
    order = [int((a == kept).all(-1).nonzero()[0]) for kept in estimator.actions]
    assert sorted(order) == list(range(60))
    features = waves(estimator.frequencies, x, u, a)
    dual = torch.linalg.solve(features @ features.T + 0.6 * torch.eye(60, dtype=DOUBLE), targets[:, 0])
    near = (-0.5 * (torch.cdist(contexts, x) / WIDTHS[0]) ** 2).exp()
    found = estimator.weights(estimator.prepare(contexts))
    torch.testing.assert_close(found, (near * dual)[:, order], atol=1e-8, rtol=0)
    assert estimator.widths_of_rows == (2, 0, 1)


def test_of_many_rows_some_are_kept_whatever_their_order_was():
    estimator, (_, _, _, a, _, _) = made(count=SEEN + 50, rank=20)
    assert len(estimator.actions) == SEEN
    assert len(estimator.actions.unique(dim=0)) == SEEN
    assert bool((torch.cdist(estimator.actions, a).amin(1) == 0).all())


def test_support_is_the_sum_of_the_features_kernel_and_never_negative():
    estimator, (x, u, _, a, _, _) = made(covariates=0, features=800)
    contexts, actions = points()
    prepared = estimator.prepare(contexts)
    features = waves(estimator.frequencies, x, u, a)
    here = waves(estimator.frequencies, contexts, u[:5], actions[0])
    wanted = (here @ features.T).sum(1).clamp_min(0)
    torch.testing.assert_close(estimator.support(prepared, actions[0]), wanted, atol=1e-9, rtol=0)
    assert bool((estimator.support(prepared, actions[0] + 40) >= 0).all())


def test_the_seed_decides_the_frequencies():
    one, again, other = (made(seed=seed)[0].frequencies for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert made(features=41)[0].frequencies.shape == (20, 4), "cosines and sines come in pairs"


def test_frequencies_over_other_columns_are_a_fault():
    estimator, _ = made()
    assert estimator.faults() == []
    estimator.frequencies = estimator.frequencies[:, :3]
    assert estimator.faults() == ["frequencies: expected the size (20, 4); got (20, 3)"]


@pytest.mark.parametrize("covariates", [0, 1])
def test_what_files_leave_out_follows_from_the_rows_to_the_last_bit(covariates):
    estimator, _ = made(covariates=covariates)
    assert list(estimator.derivable()) == ["factor", *(["embedding"] if covariates else [])]
    for name, size in estimator.derivable().items():
        assert estimator.derive(name).shape == size
        assert torch.equal(estimator.derive(name), estimator.get_buffer(name)), name


def test_rows_are_kept_only_where_they_are_fewer_numbers_than_what_follows_from_them():
    assert made(covariates=0, count=500)[0].inputs.shape == (500, 3)
    many, _ = made(covariates=0, count=600)
    assert not many.inputs.numel()
    assert many.derivable() == {}
    assert many.faults() == []


def test_a_fit_without_covariates_keeps_nothing_of_one_with():
    estimator, again = fitted(made()[0], *rows(60, covariates=0)), made(covariates=0)[0]
    assert estimator.faults() == []
    for name, value in again.state_dict().items():
        assert (
            torch.equal(
                estimator.state_dict()[name],
                value,
            )
            or name == "errors"
        ), name


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"features": 1}, "at least 2 features, 1 landmark and a positive lambda_x; got 1, 200, 0.001"),
        ({"rank": 0}, "expected at least 2 features"),
        ({"lambda_x": 0.0}, "expected at least 2 features"),
        ({"features": 2 * MAX_FEATURES + 1}, "features"),
        ({"lambda_h": -1.0}, "expected"),
        ({"widths": "silverman"}, "expected"),
    ],
)
def test_wrong_settings_are_refused(setting, said):
    with pytest.raises(ValueError, match=said):
        FourierRidge(**setting)
