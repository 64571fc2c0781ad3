"""Conjugate gradients against dense solutions of the same systems."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_operator.utils.warnings import NumericalWarning

from rehearsal_torch.data.tables.blocks import in_blocks
from rehearsal_torch.surrogates.kernel import iterative_ridge, product_kernel
from rehearsal_torch.surrogates.kernel.iterative_ridge import IterativeRidge, preconditioner, solved
from rehearsal_torch.surrogates.kernel.product_kernel import gaussian
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from tests.toys.confounded import fitted, points, rows

WIDTHS = [1.2, 0.9, 0.6]
DOUBLE = torch.float64


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def gram(points_):
    return (-0.5 * torch.cdist(points_, points_) ** 2).exp()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(2, 80),
    width=st.integers(1, 3),
    rank=st.integers(1, 90),
    ridge=st.floats(1e-3, 10.0),
)
def test_the_system_is_solved_as_a_dense_one(seed, count, width, rank, ridge):
    points_, vectors = drawn(count, width, seed=seed), drawn(count, 3, seed=seed + 1)
    found = solved(points_, ridge, vectors, preconditioner(points_, rank))
    wanted = torch.linalg.solve(gram(points_) + ridge * torch.eye(count, dtype=DOUBLE), vectors)
    torch.testing.assert_close(found, wanted, atol=1e-6 * max(1.0, 1 / ridge), rtol=1e-5)


def test_rows_that_stand_twice_are_no_trouble():
    points_ = drawn(20, 2).repeat(2, 1)
    found = solved(points_, 0.1, drawn(40, 1), preconditioner(points_, 40))
    wanted = torch.linalg.solve(gram(points_) + 0.1 * torch.eye(40, dtype=DOUBLE), drawn(40, 1))
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)


def test_a_preconditioner_of_full_rank_is_the_kernel_and_of_less_rank_lies_below_it():
    points_ = drawn(30, 2)
    factor = preconditioner(points_, 30)
    torch.testing.assert_close(factor @ factor.T, gram(points_), atol=1e-6, rtol=0)
    for rank in (1, 5, 15):
        factor = preconditioner(points_, rank)
        assert factor.shape == (30, rank)
        left = gram(points_) - factor @ factor.T
        assert float(torch.linalg.eigvalsh(left).min()) > -1e-9


def test_a_better_preconditioner_needs_fewer_steps(monkeypatch):
    points_, vectors, steps = drawn(200, 2), drawn(200, 1, seed=1), []
    product = iterative_ridge.gram_product

    def counted(*parts):
        steps[-1] += 1
        return product(*parts)

    monkeypatch.setattr(iterative_ridge, "gram_product", counted)
    for rank in (1, 20, 60):
        steps.append(0)
        solved(points_, 0.01, vectors, preconditioner(points_, rank))
    assert steps[0] > 2 * steps[1] > 2 * steps[2] > 0


def test_too_few_steps_are_warned_of():
    points_ = drawn(200, 2)
    with pytest.warns(NumericalWarning, match="CG terminated in 11 iterations"):
        solved(points_, 1e-4, drawn(200, 1), preconditioner(points_, 1), iterations=11)


@pytest.mark.parametrize("covariates", [0, 1])
def test_conjugate_gradients_are_cholesky(covariates):
    examples, (contexts, actions) = rows(300, covariates=covariates), points()
    exact, found = (
        fitted(ProductRidge(fixed=WIDTHS), *examples),
        fitted(IterativeRidge(fixed=WIDTHS, rank=50), *examples),
    )
    one, other = exact.prepare(contexts), found.prepare(contexts)
    for target in (0, 1):
        torch.testing.assert_close(
            found.value(other, actions, target), exact.value(one, actions, target), atol=1e-6, rtol=0
        )
        torch.testing.assert_close(
            found.std(other, actions, target), exact.std(one, actions, target), atol=1e-6, rtol=0
        )
    torch.testing.assert_close(
        found.support(other, actions[0]), exact.support(one, actions[0]), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(found.weights(other), exact.weights(one), atol=1e-6, rtol=0)


@pytest.mark.parametrize("covariates", [0, 1])
@pytest.mark.parametrize("count", [100, 300, 37])
def test_rows_in_blocks_give_the_bits_of_rows_in_memory(covariates, count):
    examples = rows(300, covariates=covariates)
    whole, found = fitted(IterativeRidge(rank=50), *examples), IterativeRidge(rank=50)
    found.solve_blocks(in_blocks(examples[:5], count))
    for name, value in whole.state_dict().items():
        assert torch.equal(found.state_dict()[name], value), name


@pytest.mark.parametrize("covariates", [0, 1])
def test_preconditioners_follow_from_the_rows_to_the_last_bit(covariates):
    estimator = fitted(IterativeRidge(rank=50), *rows(120, covariates=covariates))
    names = ["factor", *(["context_factor"] if covariates else [])]
    assert list(estimator.derivable()) == names
    for name, size in estimator.derivable().items():
        assert estimator.derive(name).shape == size
        assert torch.equal(estimator.derive(name), estimator.get_buffer(name)), name


def test_no_matrix_of_all_pairs_of_rows_is_formed(monkeypatch):
    sizes, made = [], gaussian

    def watched(one, other):
        sizes.append(len(one) * len(other))
        return made(one, other)

    monkeypatch.setattr(product_kernel, "gaussian", watched)
    monkeypatch.setattr(product_kernel, "CELLS", 2000)
    estimator = fitted(IterativeRidge(rank=20), *rows(400))
    contexts, actions = points()
    estimator.std(estimator.prepare(contexts), actions)
    assert sizes
    assert max(sizes) <= 2000


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"rank": 0}, "expected a positive rank and lambda_x, and a tolerance in .*; got 0, 0.001, 1e-08"),
        ({"lambda_x": 0.0}, "expected a positive rank"),
        ({"tolerance": 0.0}, r"tolerance in \(0, 1\); got 100, 0.001, 0.0"),
        ({"tolerance": 1.0}, "expected a positive rank"),
        ({"lambda_h": 0.0}, "expected"),
    ],
)
def test_wrong_settings_are_refused(setting, said):
    with pytest.raises(ValueError, match=said):
        IterativeRidge(**setting)
