import math

import pytest
import torch
from safetensors.torch import load, save

from rehearsal_torch.surrogates.derived_state import compute_derived, with_absent, without_derived
from rehearsal_torch.surrogates.kernel.fourier_ridge import FourierRidge
from rehearsal_torch.surrogates.kernel.iterative_ridge import IterativeRidge
from rehearsal_torch.surrogates.kernel.low_rank_ridge import LowRankRidge
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from tests.toys.confounded import fitted, points, rows

WIDTHS = [1.2, 0.9, 0.6]
EVERY = [ProductRidge, LowRankRidge, FourierRidge, IterativeRidge]


def kernel(one, other, width):
    return math.exp(
        -sum((a - b) ** 2 for a, b in zip(one.tolist(), other.tolist(), strict=True)) / (2 * width**2)
    )


def naive(examples, context, action, ridge, ridge_x, target=0):
    """Eq. (5)-(9) read aloud: every kernel value by itself, dense inverses."""
    x, u, _, a, targets, _ = examples
    n = len(x)
    joint = torch.tensor(
        [
            [
                kernel(x[i], x[j], WIDTHS[0]) * kernel(u[i], u[j], WIDTHS[1]) * kernel(a[i], a[j], WIDTHS[2])
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    alpha = torch.linalg.inv(joint.double() + n * ridge * torch.eye(n)) @ targets[:, target]
    near = torch.tensor([kernel(x[i], context, WIDTHS[0]) for i in range(n)], dtype=torch.float64)
    grams = [
        torch.tensor([[kernel(v[i], v[j], width) for j in range(n)] for i in range(n)], dtype=torch.float64)
        for v, width in ((x, WIDTHS[0]), (u, WIDTHS[1]))
    ]
    gamma = torch.linalg.inv(grams[0] + n * ridge_x * torch.eye(n)) @ near
    return sum(
        float(alpha[i] * near[i] * (grams[1][i] @ gamma)) * kernel(a[i], action, WIDTHS[2]) for i in range(n)
    )


@pytest.mark.parametrize("target", [0, 1])
def test_the_value_is_equation_9(target):
    examples = rows(25, actions=2)
    contexts, actions = points(actions=2, batch=2, starts=2)
    estimator = fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.01, lambda_x=0.02), *examples)
    values = estimator.value(estimator.prepare(contexts), actions, target)
    for s in range(2):
        for b in range(2):
            assert float(values[s, b]) == pytest.approx(
                naive(examples, contexts[b], actions[s, b], 0.01, 0.02, target), abs=2e-6
            )


def test_without_covariates_the_second_stage_is_one():
    examples = rows(60, covariates=0)
    contexts, actions = points()
    estimator = fitted(ProductRidge(fixed=WIDTHS), *examples)
    assert estimator.context_factors.numel() == 0
    x, _, _, a, targets, _ = examples
    inputs = torch.cat([x / WIDTHS[0], a / WIDTHS[2]], -1)
    alpha = torch.linalg.solve(
        (-0.5 * torch.cdist(inputs, inputs) ** 2).exp() + 60 * 1e-3 * torch.eye(60, dtype=torch.float64),
        targets[:, 0],
    )
    for start in actions:
        wanted = (
            -0.5 * torch.cdist(torch.cat([contexts / WIDTHS[0], start / WIDTHS[2]], -1), inputs) ** 2
        ).exp() @ alpha
        assert torch.allclose(estimator.value(estimator.prepare(contexts), start), wanted, atol=1e-10)


def test_the_ridge_grows_with_the_rows():
    """Every row twice, lambda the same: the Gram matrix and N lambda double together, so nothing changes."""
    once, contexts, actions = rows(40), *points()
    twice = tuple(torch.cat([each, each]) for each in once)
    one, two = (fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.02), *examples) for examples in (once, twice))
    assert torch.allclose(
        one.value(one.prepare(contexts), actions), two.value(two.prepare(contexts), actions), atol=1e-9
    )


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize(("covariates", "actions"), [(0, 1), (2, 2)])
def test_the_slope_is_autograds(kind, covariates, actions):
    estimator = fitted(kind(fixed=WIDTHS), *rows(80, covariates=covariates, actions=actions))
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


def test_the_deviation_is_that_of_a_gaussian_process():
    """Without covariates J is the regression function itself: the textbook variance, at the evidence's
    amplitude."""
    x, u, v, a, targets, scores = rows(50, covariates=0)
    estimator = fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.01), x, u, v, a, targets, scores)
    contexts, actions = points()
    inputs, new = (
        torch.cat([x / WIDTHS[0], a / WIDTHS[2]], -1),
        torch.cat([contexts / WIDTHS[0], actions[0] / WIDTHS[2]], -1),
    )
    gram, cross = (
        (-0.5 * torch.cdist(inputs, inputs) ** 2).exp(),
        (-0.5 * torch.cdist(new, inputs) ** 2).exp(),
    )
    noisy = gram + 50 * 0.01 * torch.eye(50, dtype=torch.float64)
    amplitude = targets[:, 1] @ torch.linalg.solve(noisy, targets[:, 1]) / 50
    variance = amplitude * (1 - (cross * torch.linalg.solve(noisy, cross.T).T).sum(1))
    assert torch.allclose(
        estimator.std(estimator.prepare(contexts), actions[0], 1), variance.sqrt(), atol=1e-9
    )


def test_the_deviation_with_covariates_is_that_of_a_weighted_sum():
    """J = sum_j gamma_j f(x, u_j, a): its variance by the posterior covariance of the f(x, u_j, a)."""
    examples = rows(40)
    x, u, _, a, targets, _ = examples
    estimator = fitted(ProductRidge(fixed=WIDTHS, lambda_h=0.01, lambda_x=0.02), *examples)
    contexts, actions = points(batch=2, starts=1)
    found = estimator.std(estimator.prepare(contexts), actions)[0]
    inputs = torch.cat([x / WIDTHS[0], u / WIDTHS[1], a / WIDTHS[2]], -1)

    def gram(one, other):
        return (-0.5 * torch.cdist(one, other) ** 2).exp()

    noisy = gram(inputs, inputs) + 40 * 0.01 * torch.eye(40, dtype=torch.float64)
    for b in range(2):
        gamma = torch.linalg.solve(
            gram(x / WIDTHS[0], x / WIDTHS[0]) + 40 * 0.02 * torch.eye(40),
            gram(x / WIDTHS[0], contexts[b : b + 1] / WIDTHS[0]),
        )
        new = torch.cat(
            [
                (contexts[b] / WIDTHS[0]).expand(40, -1),
                u / WIDTHS[1],
                (actions[0, b] / WIDTHS[2]).expand(40, -1),
            ],
            -1,
        )
        cross = gram(new, inputs)
        posterior = gram(new, new) - cross @ torch.linalg.solve(noisy, cross.T)
        amplitude = targets[:, 0] @ torch.linalg.solve(noisy, targets[:, 0]) / 40
        assert float(found[b]) == pytest.approx(
            float((amplitude * gamma.T @ posterior @ gamma).sqrt()), abs=1e-8
        )


@pytest.mark.parametrize("kind", EVERY)
def test_what_is_saved_comes_back(kind):
    estimator, (contexts, actions) = fitted(kind(widths="median"), *rows(70)), points()
    again = kind(widths="median")
    again.load_state_dict(load(save(estimator.state_dict())))
    for asked in ("value", "std"):
        one, other = (getattr(each, asked)(each.prepare(contexts), actions) for each in (estimator, again))
        assert torch.equal(one, other)
    assert torch.equal(estimator.weights(estimator.prepare(contexts)), again.weights(again.prepare(contexts)))
    assert torch.equal(
        estimator.support(estimator.prepare(contexts), actions[0]),
        again.support(again.prepare(contexts), actions[0]),
    )


def test_support_counts_rows_nearby():
    x, u, v, a, targets, scores = rows(60, covariates=0)
    estimator = fitted(ProductRidge(fixed=[1e-3, 1.0, 1e-3]), x, u, v, a, targets, scores)
    near = estimator.support(estimator.prepare(x[:4]), a[:4])
    assert torch.allclose(near, torch.ones(4, dtype=torch.float64))
    assert float(estimator.support(estimator.prepare(x[:4]), a[:4] + 1).max()) < 1e-12


@pytest.mark.parametrize("kind", EVERY)
def test_variables_between_alterations_are_refused(kind):
    x, u, _, a, targets, scores = rows(30)
    with pytest.raises(ValueError, match="no sequential form"):
        kind(first=[0]).solve(x, u, u, a, targets, scores)


@pytest.mark.parametrize(
    "setting",
    [
        {"widths": "silverman"},
        {"fixed": [1.0, 2.0]},
        {"fixed": [1.0, 0.0, 1.0]},
        {"lambda_h": 0.0},
        {"lambda_x": -1.0},
    ],
)
def test_wrong_settings_are_refused(setting):
    with pytest.raises(ValueError, match="expected"):
        ProductRidge(**setting)


@pytest.mark.parametrize("covariates", [0, 1])
@pytest.mark.parametrize("widths", ["median", "leave_one_out"])
def test_files_leave_the_factors_out_and_have_them_again(widths, covariates):
    estimator = fitted(ProductRidge(widths=widths), *rows(200, covariates=covariates))
    state = estimator.state_dict()
    written = without_derived(estimator, state, 2**30)
    assert set(state) - set(written) == {"factors"} | ({"context_factors"} if covariates else set())
    # No number for each pair of rows: a row has 3 or 4 of its own, and two coefficients for each model.
    assert sum(each.numel() for each in written.values()) < 200 * (4 + 2 * len(estimator.widths)) + 100
    read = ProductRidge(widths=widths)
    read.load_state_dict(with_absent(read, written))
    compute_derived(read, 2**30)
    assert all(torch.equal(read.state_dict()[name], value) for name, value in state.items())
    older = ProductRidge(widths=widths)
    older.load_state_dict(state)
    assert torch.equal(older.factors, estimator.factors), "files with factors are read as they are"
    assert read.faults() == older.faults() == []
