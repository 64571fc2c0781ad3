"""Experts: the truth on a stationary stream, pursuit of a drifting one."""

import math

import numpy as np
import pytest
import torch

from rehearsal_torch.estimators.drifting_regression import DriftingRegression


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


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="positive step sizes"):
        one(steps=(0.1, -1.0))
