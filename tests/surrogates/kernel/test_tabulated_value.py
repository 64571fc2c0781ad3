"""Values and deviations along one action: those of the estimator itself at every action of the intervals."""

import pytest
import torch

from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from tests.surrogates.kernel.test_spectral_ridge import QUICK, between
from tests.toys.confounded import fitted, points, rows

LOWER = torch.tensor([[-1.0], [0.2], [-3.0], [0.5], [-2.0]], dtype=torch.float64)
UPPER = torch.tensor([[2.0], [0.3], [3.0], [0.5], [1.0]], dtype=torch.float64)


def made(examples, members=3, first=()):
    return fitted(SpectralEnsemble(first, members=members, **QUICK), *examples)


@pytest.mark.parametrize(("covariates", "members"), [(1, 3), (0, 3), (2, 1)])
def test_a_table_says_what_the_estimator_says(covariates, members):
    whole = made(rows(200, covariates=covariates), members)
    prepared = whole.prepare(points()[0])
    table = whole.tabulated(prepared, LOWER, UPPER)
    unit = torch.rand(4, 7, 5, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    actions = LOWER + unit * (UPPER - LOWER)
    for found, wanted in zip(
        table.value_and_std(actions), whole.value_and_std(prepared, actions), strict=True
    ):
        assert found.shape == (4, 7, 5)
        assert torch.allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_what_has_no_cheaper_form_has_no_table():
    several = made(rows(200, actions=2), 2)
    bounds = LOWER.expand(-1, 2), UPPER.expand(-1, 2)
    assert several.tabulated(several.prepare(points()[0]), *bounds) is None, "two actions"
    one = made(rows(200), 2)
    assert one.tabulated(one.prepare(points()[0]), LOWER, 1e4 * UPPER) is None, "too many waves"
    sequential = made(between(), 2, (0,))
    contexts, _ = points(1, 2)
    assert sequential.tabulated(sequential.prepare(contexts), LOWER, UPPER) is None, "v follows the action"
