import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.location_scale_trajectory import LocationScaleTrajectory

HORIZON, ACTIONS, WIDTH, REST = 6, 4, 3, 3


def instance(
    seed: int, factor: float = 4.0, dtype: torch.dtype = torch.float64
) -> tuple[LocationScale, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A mechanism over 3 varying and 1 static features and 2 free parents, with an episode and its fixed
    parents."""
    stream = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = LocationScale(4, 2, WIDTH, hidden=16)
        with torch.no_grad():
            made.networks.inner *= factor
            made.networks.outer *= factor
    states = torch.randn(HORIZON, WIDTH, generator=stream, dtype=torch.float64)
    fixed = torch.randn(HORIZON - 1, ACTIONS, REST, generator=stream, dtype=torch.float64)
    return made.to(dtype), states, fixed, torch.randint(ACTIONS, (HORIZON,), generator=stream)


@pytest.mark.slow
@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_course_is_the_mechanism_with_abducted_noise(seed: int):
    made, states, fixed, observed = instance(seed)
    trajectory = made.unroll(states, fixed, observed)
    elsewhere = torch.randn(7, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for time in range(HORIZON - 1):
        noise = made.abduct(torch.cat([states[time], fixed[time, observed[time]]]), states[time + 1])
        every = trajectory.branch(elsewhere, time)
        assert every.shape == (7, ACTIONS, WIDTH)
        for action in range(ACTIONS):
            parents = torch.cat([elsewhere, fixed[time, action].expand(7, -1)], -1)
            expected = made(parents, noise.expand(7, -1))
            assert torch.allclose(
                trajectory.step(elsewhere, time, torch.tensor(action)), expected, atol=1e-10
            )
            assert torch.allclose(every[:, action], expected, atol=1e-10)


def test_steps_row_by_row_and_branches_by_name():
    made, states, fixed, observed = instance(3)
    trajectory = made.unroll(states, fixed, observed)
    rows, actions = (
        torch.randn(5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
        torch.tensor([3, 0, 1, 1, 2]),
    )
    joined = trajectory.step(rows, 2, actions)
    assert all(
        torch.allclose(joined[i], trajectory.step(rows[i : i + 1], 2, actions[i])[0]) for i in range(5)
    )
    assert torch.allclose(
        trajectory.branch(rows, 2, torch.tensor([2, 0])), trajectory.branch(rows, 2)[:, [2, 0]]
    )


def test_a_float32_mechanism_has_a_float64_course_that_reproduces_the_episode():
    made, states, fixed, observed = instance(4, dtype=torch.float32)
    trajectory = made.unroll(states.float(), fixed.float(), observed)
    assert trajectory.states.dtype == torch.float64
    steps = torch.cat(
        [trajectory.step(trajectory.states[t : t + 1], t, observed[t]) for t in range(HORIZON - 1)]
    )
    assert torch.allclose(steps, states[1:].float().double(), atol=1e-12)


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), factor=st.floats(0.2, 20.0))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_jacobians_are_the_derivatives_and_stay_below_the_constants(seed: int, factor: float):
    made, states, fixed, observed = instance(seed, factor)
    trajectory = made.unroll(states, fixed, observed)
    assert isinstance(trajectory, LocationScaleTrajectory)
    constants = trajectory.lipschitz()
    rows = torch.randn(5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for time in range(HORIZON - 1):
        found = trajectory.jacobians(rows, time)
        for action in range(ACTIONS):
            derivative = torch.func.vmap(
                torch.func.jacrev(lambda row, t=time, a=action: smooth_step(trajectory, row, t, a))
            )(rows)
            assert torch.allclose(found[:, action], derivative, atol=1e-10)
        assert (torch.linalg.matrix_norm(found, 2) <= constants[time]).all()
    # The course's constants see the state's columns only, so they are no larger than the mechanism's.
    assert (constants <= made.lipschitz(trajectory.noise) * (1 + 1e-8)).all()


def smooth_step(
    trajectory: LocationScaleTrajectory, row: torch.Tensor, time: int, action: int
) -> torch.Tensor:
    """F_t written out without in-place operations, which derivatives of the course itself would trip over."""
    half = trajectory.inner.shape[0] // 2
    hidden = torch.tanh(trajectory.inner @ row + trajectory.offsets[time, action])
    location = trajectory.location[0] @ hidden[:half] + trajectory.location[1]
    scale = (
        torch.nn.functional.softplus(trajectory.scale[0] @ hidden[half:] + trajectory.scale[1])
        + trajectory.floor
    )
    return location + scale * trajectory.noise[time]


@given(seed=st.integers(0, 10_000), spread=st.floats(1e-3, 5.0))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_constants_hold_between_any_two_states(seed: int, spread: float):
    made, states, fixed, observed = instance(seed)
    trajectory = made.unroll(states, fixed, observed)
    constants = trajectory.lipschitz()
    assert constants is not None
    stream = torch.Generator().manual_seed(seed)
    here, there = (spread * torch.randn(32, WIDTH, dtype=torch.float64, generator=stream) for _ in range(2))
    for time in range(HORIZON - 1):
        apart = (trajectory.branch(here, time) - trajectory.branch(there, time)).norm(dim=-1)
        assert (apart <= constants[time] * (here - there).norm(dim=-1, keepdim=True) * (1 + 1e-10)).all()


def test_single_precision_stays_close():
    made, states, fixed, observed = instance(5)
    trajectory = made.unroll(states, fixed, observed)
    assert isinstance(trajectory, LocationScaleTrajectory)
    single = trajectory.to(torch.float32)
    assert single.step(single.states[:1], 0, observed[0]).dtype == torch.float32
    assert torch.allclose(
        single.branch(single.states[:2], 1).double(), trajectory.branch(states[:2], 1), atol=1e-4
    )
    assert single.states.dtype == torch.float32


@pytest.mark.parametrize("constants", [(None, None), (1.0, None)])
def test_unconstrained_networks_have_courses_too(constants: tuple[float | None, float | None]):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = LocationScale(
            4, 2, WIDTH, hidden=16, location_constant=constants[0], scale_constant=constants[1]
        )
    _, states, fixed, observed = instance(6)
    trajectory = made.unroll(states, fixed, observed)
    again = torch.cat([trajectory.step(states[t : t + 1], t, observed[t]) for t in range(HORIZON - 1)])
    assert torch.allclose(again, states[1:], atol=1e-12)
    bound = trajectory.lipschitz()
    assert bound is not None
    assert torch.isfinite(bound).all()
