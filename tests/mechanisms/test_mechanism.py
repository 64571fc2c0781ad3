"""What a mechanism must say before it can be made, and what follows from the pair alone."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.mechanism import (
    CurvedTrajectory,
    EquationTrajectory,
    Mechanism,
    NodeMechanism,
    StackedCurvedTrajectory,
    StackedTrajectory,
    TransitionMechanism,
    replay,
    spectral_bound,
    stacked,
)
from tests.mechanisms.test_sparse_effects import HORIZON, WIDTH, instance
from tests.toys.curved_episodes import curved_episode
from tests.toys.episodes import transition_episode

DOUBLE = torch.float64


@dataclass(frozen=True)
class Scaled(Mechanism):
    """v_i = (1 + |pa|^2) u_i: a frozen record."""

    name: str = "scaled"

    def forward(self, parents, noise):
        return (1 + parents.square().sum(-1, keepdim=True)) * noise

    def abduct(self, parents, values):
        return values / (1 + parents.square().sum(-1, keepdim=True))


class Module(torch.nn.Module, Mechanism):
    """v = pa W + u: a module with parameters."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.tensor([[2.0], [-1.0]], dtype=DOUBLE))

    def forward(self, parents, noise):
        return parents @ self.weights + noise

    def abduct(self, parents, values):
        return values - parents @ self.weights


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("made", [Scaled(), Module()], ids=["record", "module"])
def test_records_and_modules_are_mechanisms_and_counterfactuals_follow_from_the_pair(made):
    parents, other, noise = drawn(6, 2), drawn(6, 2, seed=1), drawn(6, 1, seed=2)
    assert isinstance(made, Mechanism)
    values = made.forward(parents, noise)
    recovered = made.abduct(parents, values)
    torch.testing.assert_close(recovered, noise)
    # Abduction, action, prediction: under the same parents nothing changes, under others the noise stays.
    torch.testing.assert_close(made.forward(parents, recovered), values)
    torch.testing.assert_close(made.forward(other, recovered), made.forward(other, noise))


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (Mechanism, {"forward", "abduct"}),
        (TransitionMechanism, {"forward", "abduct", "noise", "unroll"}),
        (NodeMechanism, {"forward", "abduct", "scaled", "belief"}),
    ],
)
def test_nothing_can_be_left_out(kind, missing):
    assert kind.__abstractmethods__ == missing
    for left_out in missing:
        parts = {name: lambda *_: None for name in missing - {left_out}}
        with pytest.raises(TypeError, match=f"abstract method '?{left_out}'?"):
            type("Partial", (kind,), parts)()


def course_of(seed: int, learnt: bool, width: int = 3) -> CurvedTrajectory:
    trajectory = (
        transition_episode(seed, 4, 1, width, 3) if learnt else curved_episode(seed, 4, 1, width, 3)
    ).trajectory
    assert isinstance(trajectory, CurvedTrajectory)
    return trajectory


def unit(generator: torch.Generator, width: int) -> torch.Tensor:
    vector = torch.randn(width, generator=generator, dtype=torch.float64)
    return vector / vector.norm()


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), learnt=st.booleans(), width=st.integers(1, 4), radius=st.floats(0, 3))
def test_bounds_hold_on_the_ball(seed, learnt, width, radius):
    trajectory, generator = course_of(seed, learnt, width), torch.Generator().manual_seed(seed)
    time, state = seed % 3, torch.randn(1, width, generator=generator, dtype=torch.float64)
    covector = 3 * torch.randn(1, width, generator=generator, dtype=torch.float64)
    bounds = trajectory.curvature(state, time, covector, torch.tensor([radius], dtype=torch.float64))
    torch.testing.assert_close(bounds.jacobian, trajectory.jacobians(state, time))
    for _ in range(8):
        away = radius * float(torch.rand((), generator=generator)) ** 0.3
        other = state + away * unit(generator, width)
        there = trajectory.curvature(other, time, covector, torch.zeros(1, dtype=torch.float64))
        assert (torch.linalg.matrix_norm(there.jacobian, 2) <= bounds.jacobian_norm + 1e-9).all()
        assert (
            torch.linalg.matrix_norm(there.hessian - bounds.hessian, 2)
            <= bounds.hessian_lipschitz * away + 1e-9
        ).all()
        # Second derivatives along any covector are those of the bilinear map, and a chord's slope changes by
        # no more.
        direction = trajectory.curvature(
            other, time, unit(generator, width).unsqueeze(0), torch.zeros(1, dtype=torch.float64)
        )
        assert (torch.linalg.matrix_norm(direction.hessian, 2) <= bounds.second_derivative_norm + 1e-9).all()
        assert (
            torch.linalg.matrix_norm(there.jacobian - bounds.jacobian, 2)
            <= bounds.second_derivative_norm * away + 1e-9
        ).all()


@pytest.mark.parametrize("learnt", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_derivatives_are_those_of_the_step(seed, learnt):
    trajectory, generator = course_of(seed, learnt), torch.Generator().manual_seed(seed)
    state, covector = (
        torch.randn(3, generator=generator, dtype=torch.float64),
        torch.randn(3, generator=generator, dtype=torch.float64),
    )
    found = trajectory.curvature(
        state.unsqueeze(0), 1, covector.unsqueeze(0), torch.zeros(1, dtype=torch.float64)
    )
    for action in range(3):

        def forward(x, action=action):
            return trajectory.step(x.unsqueeze(0), 1, torch.tensor(action))[0]

        step = 1e-4 * torch.eye(3, dtype=torch.float64)
        jacobian = torch.stack([(forward(state + e) - forward(state - e)) / 2e-4 for e in step], -1)
        torch.testing.assert_close(found.jacobian[0, action], jacobian, atol=1e-6, rtol=1e-6)
        hessian = torch.stack(
            [
                torch.stack(
                    [
                        covector
                        @ (
                            forward(state + e + f)
                            - forward(state + e - f)
                            - forward(state - e + f)
                            + forward(state - e - f)
                        )
                        / 4e-8
                        for f in step
                    ]
                )
                for e in step
            ]
        )
        torch.testing.assert_close(found.hessian[0, action], hessian, atol=1e-5, rtol=1e-5)


def test_nothing_is_certified_where_softplus_jumps():
    trajectory = transition_episode(0, 4, 1, 3, 3).trajectory
    trajectory.scale = (trajectory.scale[0], trajectory.scale[1] + 30)
    bounds = trajectory.curvature(
        trajectory.states[:1], 0, trajectory.states[:1], torch.ones(1, dtype=torch.float64)
    )
    assert torch.isinf(bounds.second_derivative_norm).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 12),
    columns=st.integers(1, 12),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_spectral_bound_is_above_and_close(seed, rows, columns, size):
    matrix = size * torch.randn(
        3, rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    exact, bound = torch.linalg.matrix_norm(matrix, 2), spectral_bound(matrix)
    assert (bound >= exact * (1 - 1e-12)).all()
    assert (bound <= exact * min(rows, columns) ** (1 / 32) * (1 + 1e-12)).all()
    assert spectral_bound(torch.zeros(2, rows, columns)).eq(0).all()


def test_replay_steps_every_sequence_through_the_course():
    """s' = 2 s + a, from 1: by hand."""
    states = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    trajectory = EquationTrajectory(
        states, torch.tensor([0, 1, 0]), 3, lambda s, t, a: 2 * s + a[:, None].to(s)
    )
    assert trajectory.horizon == 3
    found = replay(trajectory, torch.tensor([[0, 1], [2, 0], [1, 2]]))
    assert found[..., 0].tolist() == [[1, 2, 5], [1, 4, 8], [1, 3, 8]]
    assert torch.equal(replay(trajectory, torch.tensor([[0, 1, 2]]))[0], states)
    assert replay(trajectory, torch.zeros(0, 2, dtype=torch.long)).shape == (0, 3, 1)


def trajectory(constants: torch.Tensor | None = None) -> EquationTrajectory:
    states = torch.zeros(3, 2, dtype=torch.float64)
    return EquationTrajectory(
        states, torch.zeros(3, dtype=torch.long), 4, lambda s, t, a: s * (t + 1) + a[:, None].to(s), constants
    )


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
    with pytest.raises(ValueError, match="the same observed actions"):
        stacked([plain, EquationTrajectory(states, 1 - observed, 2, plain.equation)])


def test_batches_are_row_by_row():
    trajectory, generator = course_of(2, True), torch.Generator().manual_seed(2)
    states, covectors = (
        torch.randn(4, 3, generator=generator, dtype=torch.float64),
        torch.randn(4, 3, generator=generator, dtype=torch.float64),
    )
    radii = torch.rand(4, generator=generator, dtype=torch.float64)
    joined = trajectory.curvature(states, 0, covectors, radii)
    for row in range(4):
        alone = trajectory.curvature(states[row : row + 1], 0, covectors[row : row + 1], radii[row : row + 1])
        for name in ("jacobian", "hessian", "jacobian_norm", "second_derivative_norm", "hessian_lipschitz"):
            torch.testing.assert_close(getattr(joined, name)[row : row + 1], getattr(alone, name))


def test_steps_and_branches_are_the_equation():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    assert trajectory().step(rows, 1, torch.tensor([0, 3])).tolist() == [[2, 4], [9, 11]]
    assert trajectory().step(rows, 0, torch.tensor(2)).tolist() == [[3, 4], [5, 6]]
    every = trajectory().branch(rows, 1)
    assert every.shape == (2, 4, 2)
    for action in range(4):
        assert torch.equal(every[:, action], trajectory().step(rows, 1, torch.tensor(action)))
    assert torch.equal(trajectory().branch(rows, 1, torch.tensor([3, 1])), every[:, [3, 1]])
