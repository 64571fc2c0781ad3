"""What every solver promises, and each against the formulas in dense matrices."""

import math

import pytest
import torch
from safetensors.torch import load, save

from rehearsal_torch.surrogates.kernel import product_kernel, product_kernel_ridge
from rehearsal_torch.surrogates.kernel.product_kernel import gaussian
from rehearsal_torch.surrogates.kernel.product_kernel_ridge import SOLVERS, STARTS, ProductRidge
from rehearsal_torch.surrogates.state_file import compute_derived, with_absent, without_derived
from tests.toys.confounded import fitted, points, rows

WIDTHS = [1.2, 0.9, 0.6]
DOUBLE = torch.float64
WAYS = ["pivoted", "sampled", "uniform"]
every = pytest.mark.parametrize("solver", SOLVERS)


def kernel(one, other, width):
    apart = sum((a - b) ** 2 for a, b in zip(one.tolist(), other.tolist(), strict=True))
    return math.exp(-apart / (2 * width**2))


def gram(one, other):
    return (-0.5 * torch.cdist(one, other) ** 2).exp()


def naive(examples, context, action, ridge, ridge_x, target=0):
    """Eq. (5)-(9) read aloud: every kernel value by itself, dense inverses."""
    x, u, _, a, targets, _ = examples
    n = len(x)
    grams = [
        torch.tensor([[kernel(v[i], v[j], width) for j in range(n)] for i in range(n)], dtype=DOUBLE)
        for v, width in zip((x, u, a), WIDTHS, strict=True)
    ]
    alpha = torch.linalg.inv(grams[0] * grams[1] * grams[2] + n * ridge * torch.eye(n)) @ targets[:, target]
    near = torch.tensor([kernel(x[i], context, WIDTHS[0]) for i in range(n)], dtype=DOUBLE)
    gamma = torch.linalg.inv(grams[0] + n * ridge_x * torch.eye(n)) @ near
    weights = alpha * near * (grams[1] @ gamma)
    return sum(float(weights[i]) * kernel(a[i], action, WIDTHS[2]) for i in range(n))


def asked(estimator, contexts, actions):
    """All that an estimator says."""
    prepared = estimator.prepare(contexts)
    found = [estimator.value(prepared, actions, target) for target in (0, 1)]
    found += [estimator.value_and_std(prepared, actions, target)[1] for target in (0, 1)]
    return torch.cat([each.flatten() for each in (*found, estimator.support(prepared, actions[0]))])


@every
@pytest.mark.parametrize(("covariates", "actions"), [(0, 1), (2, 2)])
def test_the_slope_is_autograds(solver, covariates, actions):
    estimator = ProductRidge(solver=solver, fixed=WIDTHS)
    fitted(estimator, *rows(80, covariates=covariates, actions=actions))
    contexts, where = points(actions=actions)
    prepared, at = estimator.prepare(contexts), where.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(estimator.value(prepared, at).sum(), at)
    value, analytic = estimator.value_and_gradient(prepared, where)
    assert value.shape == where.shape[:-1]
    assert torch.allclose(analytic, slope, atol=1e-10)
    assert torch.allclose(value, estimator.value(prepared, where), atol=1e-10)
    single, rough = estimator.value_and_gradient(prepared, where.float())
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), value, atol=1e-3)
    assert torch.allclose(rough.double(), slope, atol=1e-2)


@every
@pytest.mark.parametrize(("widths", "covariates"), [("median", 0), ("leave_one_out", 1)])
def test_what_is_saved_comes_back_and_files_leave_out_what_follows(solver, widths, covariates):
    settings = {"solver": solver, "widths": widths, "rank": 60, "features": 80}
    estimator = fitted(ProductRidge(**settings), *rows(200, covariates=covariates))
    state, again, read = estimator.state_dict(), ProductRidge(**settings), ProductRidge(**settings)
    again.load_state_dict(load(save(state)))
    assert torch.equal(asked(again, *points()), asked(estimator, *points()))
    prepared = [each.prepare(points()[0]) for each in (estimator, again)]
    assert torch.equal(again.weights(prepared[1]), estimator.weights(prepared[0]))
    written = without_derived(estimator, state, 2**30)
    # No number for each pair of rows or features: a row has 3 or 4 of its own, and two coefficients.
    assert sum(each.numel() for each in written.values()) < 200 * (10 + 2 * len(estimator.widths))
    read.load_state_dict(with_absent(read, written))
    compute_derived(read, 2**30)
    assert all(torch.equal(read.state_dict()[name], value) for name, value in state.items())
    assert estimator.faults() == again.faults() == read.faults() == []


@pytest.mark.parametrize("solver", ["nystrom", "fourier"])
def test_rows_are_kept_only_where_they_are_fewer_numbers_than_what_follows_from_them(solver):
    few, many = (
        fitted(ProductRidge(solver=solver, rank=size, features=size), *rows(300)) for size in (60, 15)
    )
    assert few.inputs.shape == (300, 4)
    assert not many.inputs.numel()
    assert not {"factor", "embedding"} & set(many.derivable())
    few.inputs = few.inputs[:, :-1]
    assert few.faults() == ["inputs: expected the size (r, 4); got (300, 3)"]


@every
def test_variables_between_alterations_are_refused(solver):
    x, u, _, a, targets, scores = rows(30)
    with pytest.raises(ValueError, match="no sequential form"):
        ProductRidge(first=[0], solver=solver).solve(x, u, u, a, targets, scores)


def test_more_rows_than_a_matrix_of_their_pairs_allows_are_refused_by_the_exact_solver(monkeypatch):
    monkeypatch.setattr(product_kernel_ridge, "MOST_EXACT", 29)
    with pytest.raises(ValueError, match=r"at most 29 rows; got 30: choose decision=cme_nystrom, or surr"):
        ProductRidge().solve(*rows(30))
    for solver in SOLVERS[1:]:
        assert fitted(ProductRidge(solver=solver, rank=10, features=10), *rows(30)).fitted


@pytest.mark.parametrize("target", [0, 1])
def test_the_value_is_equation_9(target):
    examples = rows(25, actions=2)
    contexts, actions = points(actions=2, batch=2, starts=2)
    estimator = fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.01, lambda_x=0.02), *examples)
    values = estimator.value(estimator.prepare(contexts), actions, target)
    expected = [
        [naive(examples, contexts[b], actions[s, b], 0.01, 0.02, target) for b in (0, 1)] for s in (0, 1)
    ]
    torch.testing.assert_close(values, torch.tensor(expected, dtype=DOUBLE), atol=1e-8, rtol=0)


def test_without_covariates_it_is_a_gaussian_process():
    """J is the regression function itself: the textbook mean and variance, at the evidence's amplitude."""
    x, u, v, a, targets, scores = rows(50, covariates=0)
    estimator = fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.01), x, u, v, a, targets, scores)
    assert estimator.context_factors.numel() == 0
    contexts, actions = points()
    inputs = torch.cat([x / WIDTHS[0], a / WIDTHS[2]], -1)
    new = torch.cat([contexts / WIDTHS[0], actions[0] / WIDTHS[2]], -1)
    noisy, cross = gram(inputs, inputs) + 0.5 * torch.eye(50, dtype=DOUBLE), gram(new, inputs)
    amplitude = targets[:, 1] @ torch.linalg.solve(noisy, targets[:, 1]) / 50
    variance = amplitude * (1 - (cross * torch.linalg.solve(noisy, cross.T).T).sum(1))
    prepared = estimator.prepare(contexts)
    mean = cross @ torch.linalg.solve(noisy, targets[:, 1])
    torch.testing.assert_close(estimator.value(prepared, actions[0], 1), mean, atol=1e-10, rtol=0)
    torch.testing.assert_close(
        estimator.value_and_std(prepared, actions[0], 1)[1], variance.sqrt(), atol=1e-9, rtol=0
    )


def test_the_deviation_with_covariates_is_that_of_a_weighted_sum():
    """J = sum_j gamma_j f(x, u_j, a): its variance by the posterior covariance of the f(x, u_j, a)."""
    examples = rows(40)
    x, u, _, a, targets, _ = examples
    estimator = fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.01, lambda_x=0.02), *examples)
    contexts, actions = points(batch=2, starts=1)
    found = estimator.value_and_std(estimator.prepare(contexts), actions)[1][0]
    x, u, a = x / WIDTHS[0], u / WIDTHS[1], a / WIDTHS[2]
    inputs, eye = torch.cat([x, u, a], -1), torch.eye(40, dtype=DOUBLE)
    noisy = gram(inputs, inputs) + 40 * 0.01 * eye
    for b in range(2):
        here, action = (contexts[b : b + 1] / WIDTHS[0]), actions[0, b : b + 1] / WIDTHS[2]
        gamma = torch.linalg.solve(gram(x, x) + 40 * 0.02 * eye, gram(x, here))
        new = torch.cat([here.expand(40, -1), u, action.expand(40, -1)], -1)
        cross = gram(new, inputs)
        posterior = gram(new, new) - cross @ torch.linalg.solve(noisy, cross.T)
        amplitude = targets[:, 0] @ torch.linalg.solve(noisy, targets[:, 0]) / 40
        expected = float((amplitude * gamma.T @ posterior @ gamma).sqrt())
        assert float(found[b]) == pytest.approx(expected, abs=1e-8)


def test_averaging_is_the_mean_over_models():
    examples, (contexts, actions) = rows(120), points()
    mixture = fitted(ProductRidge(widths="leave_one_out"), *examples)
    assert len(mixture.ridges) > 1
    single = [
        fitted(ProductRidge(fixed=widths.tolist(), lambda_h=float(ridge) / 120), *examples)
        for widths, ridge in zip(mixture.widths, mixture.ridges, strict=True)
    ]
    values = torch.stack([each.value(each.prepare(contexts), actions) for each in single])
    inner = torch.stack([each.value_and_std(each.prepare(contexts), actions)[1] for each in single])
    prepared = mixture.prepare(contexts)
    assert torch.allclose(mixture.value(prepared, actions), values.mean(0), atol=1e-9)
    variance = inner.square().mean(0) + values.var(0, correction=0)
    assert torch.allclose(mixture.value_and_std(prepared, actions)[1], variance.sqrt(), atol=1e-8)


@pytest.mark.parametrize("covariates", [0, 1])
def test_conjugate_gradients_and_all_rows_as_landmarks_are_exact(covariates):
    examples, where = rows(150, covariates=covariates), points()
    exact = asked(fitted(ProductRidge(fixed=WIDTHS), *examples), *where)
    others = [ProductRidge(solver="cg", fixed=WIDTHS, rank=50)]
    others += [ProductRidge(solver="nystrom", fixed=WIDTHS, rank=150, landmarks=how) for how in WAYS]
    for other in others:
        torch.testing.assert_close(asked(fitted(other, *examples), *where), exact, atol=1e-5, rtol=0)


def test_conjugate_gradients_form_no_matrix_of_all_pairs_of_rows(monkeypatch):
    sizes, made = [], gaussian

    def watched(one, other):
        sizes.append(len(one) * len(other))
        return made(one, other)

    monkeypatch.setattr(product_kernel, "gaussian", watched)
    monkeypatch.setattr(product_kernel, "CELLS", 2000)
    asked(fitted(ProductRidge(solver="cg", rank=20), *rows(200)), *points())
    assert 0 < max(sizes) <= 2000


def waves(frequencies, *blocks):
    """cos and sin of w'h over sqrt(R), each by itself: (n, 2 R)."""
    scaled = torch.cat([block / width for block, width in zip(blocks, WIDTHS, strict=True)], -1)
    phase = (scaled.unsqueeze(1) * frequencies).sum(-1)
    return torch.cat([phase.cos(), phase.sin()], -1) / len(frequencies) ** 0.5


def fourier(covariates=1, count=60, **settings):
    examples = rows(count, covariates=covariates)
    settings = {"features": 40, "lambda_h": 0.01, "lambda_x": 0.02, "rank": count, **settings}
    return fitted(ProductRidge(solver="fourier", fixed=WIDTHS, **settings), *examples), examples


@pytest.mark.parametrize("target", [0, 1])
def test_waves_without_covariates_are_ridge_regression_on_the_features(target):
    estimator, (x, u, _, a, targets, _) = fourier(covariates=0)
    contexts, actions = points()
    features, ridge = waves(estimator.frequencies, x, u, a), 60 * 0.01
    moment = features.T @ features + ridge * torch.eye(40, dtype=DOUBLE)
    theta = torch.linalg.solve(moment, features.T @ targets[:, target])
    dual = torch.linalg.solve(features @ features.T + ridge * torch.eye(60, dtype=DOUBLE), targets[:, target])
    here = waves(estimator.frequencies, contexts, u[:5], actions[0])
    variance = (
        (targets[:, target] @ dual / 60) * ridge * (here @ torch.linalg.solve(moment, here.T)).diagonal()
    )
    prepared = estimator.prepare(contexts)
    torch.testing.assert_close(estimator.value(prepared, actions[0], target), here @ theta, atol=1e-9, rtol=0)
    found = estimator.value_and_std(prepared, actions[0], target)[1].square()
    torch.testing.assert_close(found, variance, atol=1e-9, rtol=1e-6)
    support = (here @ features.T).sum(1).clamp_min(0)
    torch.testing.assert_close(estimator.support(prepared, actions[0]), support, atol=1e-9, rtol=0)
    assert bool((estimator.support(prepared, actions[0] + 40) >= 0).all())
    if not target:
        order = [int((a == kept).all(-1).nonzero()[0]) for kept in estimator.actions]
        assert sorted(order) == list(range(60))
        weights = (gram(contexts / WIDTHS[0], x / WIDTHS[0]) * dual)[:, order]
        torch.testing.assert_close(estimator.weights(prepared), weights, atol=1e-8, rtol=0)


@pytest.mark.slow
def test_the_error_of_waves_falls_with_their_root():
    examples, (contexts, actions) = rows(300), points()
    exact, off = fitted(ProductRidge(fixed=WIDTHS), *examples), []
    expected = exact.value(exact.prepare(contexts), actions)
    for features in (100, 1600):
        several = [
            ProductRidge(solver="fourier", fixed=WIDTHS, features=features, seed=seed) for seed in range(4)
        ]
        values = [fitted(each, *examples).value(each.prepare(contexts), actions) for each in several]
        off.append(sum(float((each - expected).square().mean()) for each in values) / 4)
    assert off[1] < off[0] / 3


def test_some_of_many_rows_are_starts_and_the_seed_decides_the_frequencies():
    many, (_, _, _, a, _, _) = fourier(count=STARTS + 50, rank=20)
    assert len(many.actions) == len(many.actions.unique(dim=0)) == STARTS
    assert bool((torch.cdist(many.actions, a).amin(1) == 0).all())
    one, again, other = (fourier(seed=seed, features=41)[0].frequencies for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert one.shape == (20, 4), "cosines and sines come in pairs"
