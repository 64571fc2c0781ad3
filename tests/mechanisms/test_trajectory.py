import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.trajectory import CurvedEquationTrajectory, CurvedTrajectory, spectral_bound
from tests.toys.curved_episodes import curved_episode
from tests.toys.episodes import transition_episode


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
@pytest.mark.parametrize("seed", range(5))
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


def test_constants_of_another_shape_are_refused():
    trajectory = curved_episode(0, 4, 1, 2, 3).trajectory
    with pytest.raises(ValueError, match="constants of shape"):
        CurvedEquationTrajectory(
            trajectory.states, trajectory.observed, 3, trajectory.equation, torch.ones(3)
        )
