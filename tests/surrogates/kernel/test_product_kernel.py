"""Conjugate gradients and regressions against dense solutions, and how landmarks are chosen."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_operator.utils.warnings import NumericalWarning

from rehearsal_torch.surrogates.kernel import product_kernel
from rehearsal_torch.surrogates.kernel.product_kernel import (
    candidates,
    conjugate_gradients,
    gaussian,
    leave_one_out,
    pivoted_cholesky,
    preconditioner,
    regressed,
    root_of,
)
from tests.toys.confounded import rows


def test_leave_one_out_is_refitting_without_the_row():
    x, _, _, a, targets, _ = rows(30)
    gram = gaussian(torch.cat([x, a], -1), torch.cat([x, a], -1))
    errors = leave_one_out(gram, targets[:, 0], [1e-3, 0.1])
    for place, ridge in enumerate((1e-3, 0.1)):
        for i in range(30):
            rest = [j for j in range(30) if j != i]
            # The ridge of all 30 rows, as the formula has it.
            alpha = torch.linalg.solve(
                gram[rest][:, rest] + 30 * ridge * torch.eye(29, dtype=torch.float64), targets[rest, 0]
            )
            expected = float(targets[i, 0] - gram[i, rest] @ alpha)
            assert float(errors[place, i]) == pytest.approx(expected, abs=1e-8)


DOUBLE = torch.float64


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def dense(points, ridge, vectors):
    gram = (-0.5 * torch.cdist(points, points) ** 2).exp()
    return torch.linalg.solve(gram + ridge * torch.eye(len(points), dtype=DOUBLE), vectors)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(2, 80),
    width=st.integers(1, 3),
    rank=st.integers(1, 90),
    ridge=st.floats(1e-3, 10.0),
    repeated=st.booleans(),
)
def test_the_system_is_solved_as_a_dense_one(seed, count, width, rank, ridge, repeated):
    points = drawn(count, width, seed=seed).repeat(1 + repeated, 1)
    vectors = drawn(len(points), 3, seed=seed + 1)
    found = conjugate_gradients(points, ridge, vectors, preconditioner(points, rank))
    close = {"atol": 1e-6 * max(1.0, 1 / ridge), "rtol": 1e-5}
    torch.testing.assert_close(found, dense(points, ridge, vectors), **close)


def test_a_preconditioner_of_full_rank_is_the_kernel_and_of_less_rank_lies_below_it():
    points = drawn(30, 2)
    kernel = gaussian(points, points)
    for rank in (1, 5, 15, 30):
        factor = preconditioner(points, rank)
        assert factor.shape == (30, rank)
        assert float(torch.linalg.eigvalsh(kernel - factor @ factor.T).min()) > -1e-9
    torch.testing.assert_close(factor @ factor.T, kernel, atol=1e-6, rtol=0)
    assert preconditioner(points.repeat(2, 1), 50)[:, 30:].count_nonzero() == 0, "the rows are spent"


def test_too_few_steps_are_warned_of():
    points = drawn(200, 2)
    with pytest.warns(NumericalWarning, match="CG terminated in 11 iterations"):
        conjugate_gradients(points, 1e-4, drawn(200, 1), preconditioner(points, 1), iterations=11)


def test_pivots_leave_less_than_a_uniform_draw():
    """Greedy pivots at most anywhere, drawn ones in sum."""
    values = torch.cat(rows(500)[:2], -1)
    exact, stream = gaussian(values, values), torch.Generator().manual_seed(1)
    (greedy, factor), (sampled, other) = pivoted_cholesky(values, 40), pivoted_cholesky(values, 40, stream)
    for pivots, each in ((greedy, factor), (sampled, other)):
        assert len(set(pivots.tolist())) == 40
        assert torch.allclose(each[pivots], each[pivots].tril(), atol=1e-9)
        assert torch.allclose(each @ each[pivots].T, exact[:, pivots], atol=1e-8)
        assert torch.allclose(each[pivots], root_of(values[pivots]), atol=1e-8)
    some = torch.randperm(500, generator=stream)[:40]
    uniform = exact[:, some] @ torch.linalg.pinv(exact[some][:, some], hermitian=True) @ exact[some]
    left = [(exact - each).diagonal() for each in (uniform, factor @ factor.T, other @ other.T)]
    assert float(left[1].max()) < float(left[0].max())
    assert float(left[2].sum()) < float(left[0].sum())


def test_of_many_rows_some_are_candidates_by_the_seed(monkeypatch):
    monkeypatch.setattr(product_kernel, "CANDIDATES", 30)
    assert candidates(30, 0).tolist() == list(range(30))
    places = candidates(100, 0).tolist()
    assert places == sorted(set(places)) == candidates(100, 0).tolist() != candidates(100, 1).tolist()
    assert len(places) == 30


def test_a_regression_sums_over_spans(monkeypatch):
    features, targets = rows(50)[0], rows(50)[4]
    moment = features.T @ features + 2.0 * torch.eye(2, dtype=DOUBLE)
    theta = torch.linalg.solve(moment, features.T @ targets)
    for cells in (2**20, 30):
        monkeypatch.setattr("rehearsal_torch.surrogates.kernel.product_kernel.CELLS", cells)
        found = regressed(50, lambda span: (features[span], targets[span]), 2.0)
        torch.testing.assert_close(found.theta, theta)
        torch.testing.assert_close(found.factor @ found.factor.T, moment)
        torch.testing.assert_close(found.total, features.sum(0))
        torch.testing.assert_close(found.explained, (targets * (features @ theta)).sum(0))
