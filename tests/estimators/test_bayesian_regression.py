"""What both regressions begin with: rows standardised by the basis, and parameters brought back to units."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.estimators.bayesian_regression import (
    BayesianRegression,
    ConjugateRegression,
    EvidenceRidge,
)

DOUBLE = torch.float64
EVERY = pytest.mark.parametrize("kind", [ConjugateRegression, EvidenceRidge])


class LeastSquares(BayesianRegression):
    """The least-squares line of the basis, as if it were certain."""

    def solve(self, *examples):
        inputs, targets, basis, to_predict = self._standardised_examples(examples)
        self.shown, self.counts, self.to_predict = (inputs, targets), basis, to_predict
        rows = basis > 0
        design = torch.cat([torch.ones(len(inputs), 1, dtype=DOUBLE), inputs], -1)[rows]
        found = torch.linalg.lstsq(design, targets[rows]).solution
        self.line, self.score = found, torch.zeros((), dtype=DOUBLE)
        self.rest = targets[rows] - design @ found

    def draw(self, count, stream):
        covariance = self.rest.T @ self.rest / (len(self.rest) - 1)
        return self._in_units(
            self.line[1:].expand(count, -1, -1),
            self.line[0].expand(count, -1),
            torch.linalg.cholesky(covariance).expand(count, -1, -1),
        )

    def log_predictive(self, parents, values):
        raise NotImplementedError


def data(count=30, seed=0):
    stream = torch.Generator().manual_seed(seed)
    parents = torch.randn(count, 2, dtype=DOUBLE, generator=stream) * torch.tensor([1.0, 100.0]) + 5
    noise = torch.randn(count, 2, dtype=DOUBLE, generator=stream)
    values = 7 + parents @ torch.tensor([[1.0, -1.0], [0.02, 0.5]], dtype=DOUBLE) + noise
    return parents, values


def begun(parents, values, first=20, kind=LeastSquares, **more):
    made = kind(parents.shape[1], values.shape[1], **more)
    early = torch.arange(len(values)) < first
    made.solve(parents, values, early.double(), ~early)
    return made


def test_columns_are_standardised_by_the_basis_alone():
    parents, values = data()
    made = begun(parents, values)
    shown = torch.cat(made.shown, -1)
    torch.testing.assert_close(shown[:20].mean(0), torch.zeros(4, dtype=DOUBLE), atol=1e-12, rtol=0)
    torch.testing.assert_close(shown[:20].std(0), torch.ones(4, dtype=DOUBLE))
    torch.testing.assert_close(shown * made.scale + made.location, torch.cat([parents, values], -1))
    values[20:] *= 1e6
    again = begun(parents, values)
    assert torch.equal(again.scale, made.scale)
    assert torch.equal(again.location, made.location)
    assert made.to_predict.dtype == torch.bool
    assert made.counts.tolist() == [1.0] * 20 + [0.0] * 10


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    units=st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4),
    shift=st.floats(-100, 100),
    seed=st.integers(0, 50),
)
def test_in_units_the_line_is_that_of_least_squares_in_units(units, shift, seed):
    parents, values = data(seed=seed)
    factor = torch.tensor(units, dtype=DOUBLE)
    parents, values = parents * factor[:2] + shift, values * factor[2:] - shift
    weights, intercept, covariance = begun(parents, values).draw(3, torch.Generator())
    assert (weights.shape, intercept.shape, covariance.shape) == ((3, 2, 2), (3, 2), (3, 2, 2))
    design = torch.cat([torch.ones(20, 1, dtype=DOUBLE), parents[:20] - parents[:20].mean(0)], -1)
    fitted = design @ torch.linalg.lstsq(design, values[:20]).solution
    size = values.abs().amax(0)
    found = intercept[0] + parents[:20] @ weights[0]
    assert bool(((found - fitted).abs() <= 1e-8 * size).all())
    rest = values[:20] - fitted
    torch.testing.assert_close(covariance[1], rest.T @ rest / 19, rtol=1e-6, atol=1e-9)


@EVERY
def test_rows_that_are_neither_basis_nor_foreseen_teach_nothing(kind):
    parents, values = data()
    basis, to_predict = torch.zeros(30, dtype=DOUBLE), torch.zeros(30, dtype=torch.bool)
    basis[:15], to_predict[20:] = 1.0, True
    made, other = kind(2, 2), kind(2, 2)
    made.solve(parents, values, basis, to_predict)
    parents[15:20], values[15:20] = -1e3, 1e3
    other.solve(parents, values, basis, to_predict)
    assert torch.equal(made.score, other.score)
    stream = torch.Generator
    for one, two in zip(
        made.draw(5, stream().manual_seed(0)), other.draw(5, stream().manual_seed(0)), strict=True
    ):
        assert torch.equal(one, two)
