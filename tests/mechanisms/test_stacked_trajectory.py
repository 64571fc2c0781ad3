import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.stacked_trajectory import StackedCurvedTrajectory, StackedTrajectory, stacked
from rehearsal_torch.mechanisms.trajectory import EquationTrajectory
from tests.mechanisms.test_sparse_effects import HORIZON, WIDTH, instance


def members(seed: int):
    made, states, fixed, observed = instance(seed)
    other, _, _, _ = instance(seed + 1, factor=2.0)
    return [each.unroll(states, fixed, observed) for each in (made, other)], observed


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_each_block_moves_by_its_own_member(seed: int):
    each, observed = members(seed)
    both = stacked(each)
    assert isinstance(both, StackedCurvedTrajectory)
    assert both.states.shape == (HORIZON, 2 * WIDTH)
    rows = torch.randn(4, 2 * WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    parts = rows.split(WIDTH, -1)
    actions = torch.tensor([0, 5, 2, 2])
    for time in range(HORIZON - 1):
        expected = [one.branch(part, time) for one, part in zip(each, parts, strict=True)]
        torch.testing.assert_close(both.branch(rows, time), torch.cat(expected, -1))
        steps = [one.step(part, time, actions) for one, part in zip(each, parts, strict=True)]
        torch.testing.assert_close(both.step(rows, time, actions), torch.cat(steps, -1))
        again = both.step(both.states[time : time + 1], time, observed[time])
        torch.testing.assert_close(again[0], both.states[time + 1])
    assert torch.equal(both.lipschitz(), torch.maximum(each[0].lipschitz(), each[1].lipschitz()))
    assert both.to(torch.float32).states.dtype == torch.float32


def test_derivatives_are_block_diagonal_with_the_largest_bounds():
    each, _ = members(3)
    both = stacked(each)
    assert isinstance(both, StackedCurvedTrajectory)
    rows, covectors = torch.randn(
        2, 2, 2 * WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    radii = torch.tensor([0.1, 0.7], dtype=torch.float64)
    found = both.curvature(rows, 1, covectors, radii)
    own = [
        one.curvature(row, 1, covector, radii)
        for one, row, covector in zip(each, rows.split(WIDTH, -1), covectors.split(WIDTH, -1), strict=True)
    ]
    expected = torch.block_diag(own[0].jacobian[1, 4], own[1].jacobian[1, 4])
    torch.testing.assert_close(found.jacobian[1, 4], expected)
    torch.testing.assert_close(both.jacobians(rows, 1)[1, 4], expected)
    torch.testing.assert_close(
        found.hessian[0, 2], torch.block_diag(own[0].hessian[0, 2], own[1].hessian[0, 2])
    )
    assert torch.equal(found.jacobian_norm, torch.maximum(own[0].jacobian_norm, own[1].jacobian_norm))


def test_members_without_bounds_or_of_another_episode():
    states, observed = torch.zeros(3, 1, dtype=torch.float64), torch.tensor([0, 1, 0])
    plain = EquationTrajectory(states, observed, 2, lambda s, t, a: s + a[:, None])
    both = stacked([plain, plain])
    assert type(both) is StackedTrajectory
    assert both.lipschitz() is None
    assert both.to(torch.float32).states.shape == (3, 2)
    with pytest.raises(ValueError, match="the same observed actions"):
        stacked([plain, EquationTrajectory(states, 1 - observed, 2, plain.equation)])
    with pytest.raises(ValueError, match="at least one trajectory"):
        stacked([])
