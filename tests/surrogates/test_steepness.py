"""Steepness: measured norms, beside certified constants that they never exceed."""

from functools import partial

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.problems.episodes.stays import CONTEXTUAL, DOSES, STATIC, VARYING
from rehearsal_torch.surrogates.transition import TransitionModel, steepness
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=120, seed=0)


@pytest.mark.parametrize("constants", [(1.0, 0.1), (0.5, 0.3), (None, None)])
def test_jacobians_stay_below_the_bound(
    problem: SepsisSimulated, constants: tuple[float | None, float | None]
) -> None:
    torch.manual_seed(0)
    part = partial(LocationScale, hidden=30, location_constant=constants[0], scale_constant=constants[1])
    model = TransitionModel(VARYING, STATIC, CONTEXTUAL, DOSES, part)
    fit(model, problem.observations(), Descent(max_epochs=3, progress=False))
    found = steepness(model, problem.held_out(), rows=100)
    assert 0 < found.jacobian_mean <= found.jacobian_largest
    assert found.share_largest <= 1
    assert found.jacobian_largest <= found.bound_largest
    if constants[0] is not None and constants[1] is not None:
        assert found.location_constant <= constants[0] * (1 + 1e-6)
        assert found.scale_constant <= constants[1] * (1 + 1e-6)
    parents, values = (part[:1].double() for part in model.examples(problem.held_out()))
    mechanism = model.mechanism.double()
    noise = mechanism.abduct(parents, values)
    by_hand = torch.autograd.functional.jacobian(
        lambda s: mechanism(torch.cat([s, parents[:, 12:]], -1), noise)[0], parents[:, :12]
    )[:, 0]
    assert steepness(
        model, Table.observed(problem.held_out().names, problem.held_out().values[:1])
    ).jacobian_largest == pytest.approx(float(torch.linalg.matrix_norm(by_hand, 2)), rel=1e-5)


def test_no_rows_are_refused(problem: SepsisSimulated) -> None:
    model = TransitionModel(VARYING, STATIC, CONTEXTUAL, DOSES, partial(LocationScale, hidden=3))
    table = problem.held_out()
    with pytest.raises(ValueError, match="got none"):
        steepness(model, Table.observed(table.names, table.values[:0]))
