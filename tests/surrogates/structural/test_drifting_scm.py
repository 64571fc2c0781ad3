"""Drifting linear models in the loop: growing tables, altered rounds, drift followed.

Experts: the truth on a stationary stream, pursuit of a drifting one.
"""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.structural.drifting_scm import DriftingLinear, DriftingRegression
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
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
    few = fit(DriftingLinear(world.task, initial=10), world.table(60))
    assert int(few.regressions.initial_rows) == 10


def stream(rounds, slope, seed=0, noise=0.3):
    """Rows (p1, p2, v) with v = 0.5 + slope(t) p1 - p2 + noise."""
    draw = np.random.default_rng(seed)
    parents = draw.normal(size=(rounds, 2)) * [2.0, 0.5] + [1.0, -3.0]
    gains = np.array([slope(t) for t in range(rounds)])
    values = 0.5 + gains * parents[:, 0] - parents[:, 1] + noise * draw.normal(size=rounds)
    return torch.from_numpy(np.column_stack([parents, values]))


def one(**more):
    return DriftingRegression([[0, 1]], [2], [[2]], [[]], **more)


def run(made, rows, touched=None, first=10, start=(0.0, 0.0, 0.0)):
    cells = torch.zeros_like(rows, dtype=torch.bool) if touched is None else touched
    begin = torch.tensor([[start]], dtype=torch.float64).expand(len(rows), -1, -1)
    made.solve(
        rows,
        cells,
        begin,
        torch.full((len(rows), 1), 0.09, dtype=torch.float64),
        torch.full((len(rows),), first),
    )
    return made


@pytest.mark.slow
def test_a_stationary_stream_is_learnt_from_a_wrong_start():
    made = run(one(), stream(6000, lambda t: 2.0))
    intercept, gains = made.coefficients()
    assert torch.allclose(gains[0], torch.tensor([2.0, -1.0], dtype=torch.float64), atol=0.2)
    assert float(intercept[0]) == pytest.approx(0.5, abs=0.4)


@pytest.mark.slow
def test_a_drifting_stream_is_followed_where_fixed_coefficients_fall_behind():
    def slope(t):
        return 2 + math.sin(2 * math.pi * t / 300)

    rows, errors, fixed = stream(900, slope), [], []
    made = one(horizon=100)
    run(made, rows[:10], start=(0.5, 2.0, -1.0))
    for t in range(10, 900):
        _, gains = made.coefficients()
        errors.append(abs(float(gains[0, 0]) - slope(t)))
        fixed.append(abs(2.0 - slope(t)))
        run(made, rows[: t + 1], start=(0.5, 2.0, -1.0))
    assert np.mean(errors) < 0.4 * np.mean(fixed)


def test_going_on_is_the_same_as_going_through_all_at_once():
    rows = stream(200, lambda t: 2.0)
    step, whole = one(), run(one(), rows)
    for end in (50, 51, 120, 200):
        run(step, rows[:end])
    assert torch.equal(step.experts, whole.experts)
    assert torch.equal(step.weights, whole.weights)
    other = rows.clone()
    other[3, 2] += 1.0
    run(step, other)
    assert torch.equal(step.experts, run(one(), other).experts)


def test_altered_rounds_teach_nothing_of_what_was_set():
    rows = stream(60, lambda t: 2.0)
    touched = torch.zeros_like(rows, dtype=torch.bool)
    touched[10:, 2] = True
    made = run(one(), rows, touched)
    assert torch.equal(made.experts, run(one(), rows[:10]).experts)
    touched[30, 2] = False
    assert not torch.equal(run(one(), rows, touched).experts, made.experts)


def test_experts_stay_within_reach_and_a_hopeless_one_loses_its_votes():
    made = run(one(steps=(0.01, 50.0), horizon=50), stream(300, lambda t: 2.0), start=(0.5, 2.0, -1.0))
    assert (made.experts.norm(dim=-1) <= made.radii.unsqueeze(-1) * (1 + 1e-12)).all()
    assert float(made.weights[0, 1]) < 1e-6
    assert torch.allclose(made.weights.sum(-1), torch.ones(1, dtype=torch.float64))


def test_the_vote_uses_the_loss_before_the_step():
    rows = stream(11, lambda t: 2.0)
    made = run(one(steps=(0.1, 0.4)), rows)
    # In the first round both experts are equal, so their losses are: votes cannot move.
    assert torch.allclose(made.weights, torch.full((1, 2), 0.5, dtype=torch.float64))
    assert not torch.equal(made.experts[0, 0], made.experts[0, 1])
