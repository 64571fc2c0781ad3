"""Drifting linear models in the loop: growing tables, altered rounds, drift followed."""

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.structural.drifting_scm import DriftingLinear
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain


def rounds(count, slope, seed=0, altered="a"):
    """Rows of the chain in which a was set at random and m = 0.2 + slope a + noise."""
    g = torch.Generator().manual_seed(seed)
    x, a, e, f = torch.randn(4, count, generator=g, dtype=torch.float64)
    m = 0.2 + slope * a + 0.3 * e
    y = 0.4 + m - 0.7 * x + 0.3 * f
    touched = torch.zeros(count, 4, dtype=torch.bool)
    touched[:, ("x", "a", "m", "y").index(altered)] = True
    return Table(("x", "a", "m", "y"), torch.stack([x, a, m, y], -1), touched)


def effect(model):
    return float(model.response(("a",)).action)


def test_before_any_round_it_is_least_squares():
    world = chain()
    drifting, fixed = (
        fit(DriftingLinear(world.task), world.table(300)),
        fit(LinearStructural(world.task, draws=0), world.table(300)),
    )
    for names in ((), *world.task.candidates):
        one, other = drifting.response(names), fixed.response(names)
        for field in ("context", "action", "constant", "covariance"):
            assert torch.allclose(getattr(one, field), getattr(other, field), atol=1e-9)
    assert drifting.linear_models_of([("a",)]) == [None]


def test_it_follows_what_least_squares_averages_away():
    world = chain()
    table = world.table(300) + rounds(150, 3.0)
    drifting, fixed = (
        fit(DriftingLinear(world.task), table),
        fit(LinearStructural(world.task, draws=0), table),
    )
    assert abs(effect(drifting) - 3.0) < 0.35
    assert abs(effect(fixed) - 3.0) > 0.5


def test_growing_tables_are_learnt_round_by_round():
    world = chain()
    table, more = world.table(50), rounds(20, 2.0)
    step, whole = DriftingLinear(world.task), fit(DriftingLinear(world.task), table + more)
    for count in range(21):
        fit(step, table + Table(more.names, more.values[:count], more.altered[:count]))
    for key, value in whole.state_dict().items():
        assert torch.equal(value, step.state_dict()[key]), key


def test_an_altered_variable_teaches_nothing_of_its_own_equation():
    world = chain()
    table = world.table(50)
    before, after = (
        fit(DriftingLinear(world.task), table),
        fit(DriftingLinear(world.task), table + rounds(30, -5.0, altered="m")),
    )
    # m was set: its equation stays, that of y learns.
    assert effect(before) / float(before.response(("m",)).action) == pytest.approx(
        effect(after) / float(after.response(("m",)).action), rel=1e-9
    )
    assert float(before.response(("m",)).action) != pytest.approx(
        float(after.response(("m",)).action), rel=1e-9
    )


def test_it_begins_with_observations():
    world = chain()
    with pytest.raises(ValueError, match="begin with observations"):
        fit(DriftingLinear(world.task), rounds(20, 2.0))
    with pytest.raises(ValueError, match="at least 3 rows"):
        DriftingLinear(world.task, initial=2)
    few = fit(DriftingLinear(world.task, initial=10), world.table(60))
    assert int(few.regressions.initial_rows) == 10
