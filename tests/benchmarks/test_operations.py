"""Operations of matrix arithmetic are those of the formulas, however torch is asked."""

import pytest
import torch

from benchmarks.suite.operations import operations

SQUARE = 2 * torch.eye(4, dtype=torch.float64).expand(3, 4, 4)
TALL = torch.arange(24, dtype=torch.float64).reshape(3, 4, 2).cos()


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: SQUARE @ TALL, 3 * 2 * 4 * 4 * 2),
        (lambda: SQUARE[0] @ TALL[0, :, 0], 2 * 4 * 4),
        (lambda: TALL[0, :, 0] @ TALL[0, :, 1], 2 * 4),
        (lambda: torch.baddbmm(TALL, SQUARE, TALL), 3 * 2 * 4 * 4 * 2),
        (lambda: torch.linalg.cholesky(SQUARE), 3 * 4**3 / 3),
        (lambda: torch.cholesky_inverse(SQUARE), 3 * 2 * 4**3 / 3),
        (lambda: torch.cholesky_solve(TALL, SQUARE), 3 * 2 * 4**2 * 2),
        (lambda: torch.linalg.solve_triangular(SQUARE, TALL, upper=False), 3 * 4**2 * 2),
        (lambda: torch.linalg.solve(SQUARE, TALL), 3 * (2 * 4**3 / 3 + 2 * 4**2 * 2)),
        (lambda: torch.linalg.inv(SQUARE), 3 * 2 * 4**3),
        (lambda: torch.linalg.eigh(SQUARE), 3 * 9 * 4**3),
        (lambda: torch.linalg.svd(TALL), 3 * (14 * 4 * 2**2 + 8 * 2**3)),
        (lambda: torch.linalg.qr(TALL), 3 * (4 * 4 * 2**2 - 4 * 2**3 / 3)),
    ],
)
def test_each_formula(call, wanted):
    assert operations(call) == {"float64": pytest.approx(wanted)}


def test_gradients_and_precisions_are_counted():
    given = torch.ones(5, 4, requires_grad=True)
    # Forwards (5, 4) by (4, 5), and backwards one product for each factor.
    assert operations(lambda: (given @ given.mT).sum().backward()) == {"float32": 3 * 2 * 5 * 5 * 4}


def test_composed_operations_are_counted_without_gradients():
    def call():
        with torch.inference_mode():
            torch.nn.functional.linear(TALL.mT, SQUARE[0])

    assert operations(call) == {"float64": 3 * 2 * 2 * 4 * 4}


def test_what_is_no_matrix_arithmetic_is_not_counted():
    whole = torch.ones(4, 4, dtype=torch.long)
    assert operations(lambda: (TALL.exp().sum(), whole @ whole, sorted("ba"))) == {}
