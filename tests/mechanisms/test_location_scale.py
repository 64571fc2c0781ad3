import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rehearsal_torch.mechanisms.location_scale import (
    LipschitzNetwork,
    LocationScale,
    LocationScaleTrajectory,
    spectral_norm,
)
from rehearsal_torch.training.gradient_descent import Descent


def mechanism(
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    factor: float = 1.0,
    constants: tuple[float | None, float | None] = (1.0, 0.1),
) -> LocationScale:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = LocationScale(5, 3, 3, hidden=24, location_constant=constants[0], scale_constant=constants[1])
        with torch.no_grad():
            made.networks.inner *= factor
            made.networks.outer *= factor
            made.factor += 0.5 * torch.randn(3, 3)
    return made.to(dtype)


def draws(seed: int, rows: int, *widths: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    stream = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, width, generator=stream, dtype=torch.float64).to(dtype) for width in widths]


@given(
    seed=st.integers(0, 10_000),
    factor=st.floats(0.05, 20.0),
    loud=st.floats(0.1, 20.0),
    spread=st.floats(1e-3, 5.0),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_lipschitz_in_the_state_whatever_the_action_and_the_noise(
    seed: int, factor: float, loud: float, spread: float
):
    """|g(s,a,u) - g(s',a,u)| <= (L_h + L_phi max|u_i|) |s - s'|, and the certified constant is no larger than
    that."""
    made = mechanism(seed, factor=factor)
    here, there, action, noise = draws(seed, 64, 5, 5, 3, 3)
    here, there, action, noise = spread * here, spread * there, 3 * action, loud * noise
    nominal = 1.0 + 0.1 * noise.abs().amax(-1)
    certified = made.lipschitz(noise)
    apart = (made(torch.cat([here, action], -1), noise) - made(torch.cat([there, action], -1), noise)).norm(
        dim=-1
    )
    assert (certified <= nominal * (1 + 1e-12)).all()
    assert (apart <= certified * (here - there).norm(dim=-1) * (1 + 1e-10)).all()


def test_log_likelihood_is_the_normal_density_of_the_noise_times_the_change_of_variables():
    made = mechanism(3, factor=3.0)
    parents, values = draws(4, 200, 8, 3)
    _, scale = made.moments(parents)
    normal = torch.distributions.MultivariateNormal(
        torch.zeros(3, dtype=torch.float64), scale_tril=made.cholesky()
    )
    expected = normal.log_prob(made.abduct(parents, values)) - scale.log().sum(-1)
    assert torch.allclose(made.log_likelihood(parents, values), expected, atol=1e-10)
    assert torch.allclose(made.loss(parents, values), -expected.mean(), atol=1e-10)
    assert made.log_likelihood(parents.reshape(20, 10, 8), values.reshape(20, 10, 3)).shape == (20, 10)


@given(entries=st.lists(st.floats(-3, 3), min_size=9, max_size=9))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_sigma_is_positive_definite_with_a_triangular_factor(entries: list[float]):
    made = mechanism()
    with torch.no_grad():
        made.factor.copy_(torch.tensor(entries, dtype=torch.float64).reshape(3, 3))
    factor = made.cholesky().detach()
    assert (factor.diagonal() > 0).all()
    assert torch.equal(factor, factor.tril())
    assert torch.allclose(torch.linalg.cholesky(factor @ factor.mT), factor, rtol=1e-6, atol=1e-8)


def test_norms_are_exact_after_training_and_the_state_keeps_its_names():
    parents, values = draws(6, 512, 8, 3, dtype=torch.float32)
    made = mechanism(7, torch.float32, factor=5.0)
    Descent(max_epochs=5, batch_size=64, learning_rate=0.02, progress=False).train(made, (parents, values))
    for weight in (made.networks.inner, made.networks.outer):
        assert (torch.linalg.matrix_norm(weight.detach().double(), 2) <= 1 + 1e-6).all()
    location, scale = made.networks.lipschitz().tolist()
    assert location <= 1 + 1e-12
    assert scale <= 0.1 + 1e-12
    assert set(made.state_dict()) == {
        "factor",
        *(f"networks.{name}" for name in ("inner", "action", "bias", "outer", "shift")),
    }
    other = mechanism(8, torch.float32)
    other.load_state_dict(made.state_dict())
    assert torch.equal(other.log_likelihood(parents, values), made.log_likelihood(parents, values))


def network(
    seed: int = 0,
    smooth: int = 5,
    free: int = 2,
    outputs: int = 3,
    hidden: int = 16,
    constants: tuple[float | None, ...] = (1.0, 0.1),
) -> LipschitzNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LipschitzNetwork(smooth, free, outputs, hidden, constants)


def swollen(seed: int, factor: float, **shape: int) -> LipschitzNetwork:
    """A network whose raw weights are far beyond the constraint."""
    made = network(seed, **shape).double()
    with torch.no_grad():
        made.inner *= factor
        made.outer *= factor
    return made


@pytest.mark.parametrize("shape", [(2, 200, 12), (2, 9, 200), (3, 4, 4), (1, 1, 7), (1, 7, 1), (1, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_norm_is_exact(shape: tuple[int, int, int], dtype: torch.dtype):
    weight = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    expected = torch.linalg.matrix_norm(weight.double(), 2)
    assert torch.allclose(
        spectral_norm(weight).double(), expected, rtol=1e-6 if dtype == torch.float32 else 1e-14, atol=0
    )


@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 3, 6), (1, 1, 4), (1, 4, 1)])
def test_the_norms_derivative(shape: tuple[int, int, int]):
    weight = torch.randn(
        shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    ).requires_grad_()
    assert torch.autograd.gradcheck(spectral_norm, (weight,))
    (gradient,) = torch.autograd.grad(spectral_norm(weight).sum(), weight)
    left, _, right = torch.linalg.svd(weight.detach(), full_matrices=False)
    assert torch.allclose(gradient, left[..., :1] @ right[..., :1, :], atol=1e-12)


def test_the_derivative_of_a_repeated_norm_is_a_subgradient():
    weight = (
        2
        * torch.linalg.qr(
            torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        ).Q
    )[None].requires_grad_()
    (gradient,) = torch.autograd.grad(spectral_norm(weight).sum(), weight)
    assert torch.isfinite(gradient).all()
    # Subgradients of the spectral norm have nuclear norm one and agree with the norm along the weight itself.
    assert torch.linalg.matrix_norm(gradient, "nuc").item() == pytest.approx(1.0)
    assert (gradient * weight).sum().item() == pytest.approx(2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_of_zero_give_numbers(dtype: torch.dtype):
    made = network().to(dtype)
    with torch.no_grad():
        for weight in made.parameters():
            weight.zero_()
    out = made(torch.ones(4, 5, dtype=dtype), torch.ones(4, 2, dtype=dtype))
    assert torch.equal(out, torch.zeros(2, 4, 3, dtype=dtype))
    out.sum().backward()
    assert all(weight.grad is not None and torch.isfinite(weight.grad).all() for weight in made.parameters())
    made.finish()
    assert all(torch.isfinite(weight).all() for weight in made.parameters())
    assert made.lipschitz().max() < 1e-12


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), factor=st.floats(0.01, 30.0), spread=st.floats(1e-3, 10.0))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_no_two_points_are_torn_apart_by_more_than_the_constant(seed: int, factor: float, spread: float):
    made = swollen(seed, factor)
    stream = torch.Generator().manual_seed(seed)
    here, there = (spread * torch.randn(64, 5, dtype=torch.float64, generator=stream) for _ in range(2))
    action = 3 * torch.randn(64, 2, dtype=torch.float64, generator=stream)
    apart = (made(here, action) - made(there, action)).norm(dim=-1)
    bound = made.lipschitz()[:, None] * (here - there).norm(dim=-1)
    assert (made.lipschitz() <= torch.tensor([1.0, 0.1], dtype=torch.float64) * (1 + 1e-12)).all()
    assert (apart <= bound * (1 + 1e-12)).all()


def test_the_constant_is_used_up_where_the_network_is_steep():
    """A bound is worth something only if something comes near it: one unit, far from saturation, turns into
    nearly the constant."""
    made = network(smooth=1, outputs=1, hidden=1, free=0).double()
    with torch.no_grad():
        made.bias.zero_()
        made.inner.fill_(3.0)
        made.outer.fill_(3.0)
    step = torch.tensor([[-1e-3], [1e-3]], dtype=torch.float64)
    slope = made(step, step[:, :0]).diff(dim=1).abs().flatten() / 2e-3
    assert torch.allclose(slope, torch.tensor([1.0, 0.1], dtype=torch.float64), rtol=1e-4)


def test_finish_leaves_stored_weights_within_the_bound_and_the_function_alone():
    made = network(hidden=200, smooth=12, outputs=9)
    with torch.no_grad():
        made.inner *= 7
        made.outer[0] *= 9
        made.outer[1] *= 0.01
    small = made.outer[1].clone()
    smooth, free = torch.randn(50, 12, generator=torch.Generator().manual_seed(0)), torch.ones(50, 2)
    before = made(smooth, free).detach()
    made.finish()
    for weight in (made.inner, made.outer):
        norms = torch.linalg.matrix_norm(weight.detach().double(), 2)
        assert (norms <= 1 + 1e-6).all()
        assert norms[0] > 1 - 1e-5
    assert torch.equal(made.outer[1], small)
    assert torch.allclose(made(smooth, free), before, atol=2e-6)


def test_each_network_is_the_textbook_formula():
    made = swollen(3, 4.0)
    stream = torch.Generator().manual_seed(0)
    s, a = (
        torch.randn(7, 5, dtype=torch.float64, generator=stream),
        torch.randn(7, 2, dtype=torch.float64, generator=stream),
    )

    def divided(weight: Tensor) -> Tensor:
        return weight / torch.linalg.matrix_norm(weight, 2).clamp_min(1.0)

    for index, constant in enumerate((1.0, 0.1)):
        hidden = torch.tanh(
            constant**0.5 * (s @ divided(made.inner[index]).T + made.bias[index] + a @ made.action[index].T)
        )
        out = constant**0.5 * (hidden @ divided(made.outer[index]).T + made.shift[index])
        assert torch.allclose(made(s, a)[index], out, atol=1e-12)


def test_batches_of_any_shape_and_the_whole_gradient():
    made = network().double()
    stream = torch.Generator().manual_seed(0)
    s, a = (
        torch.randn(2, 3, 5, dtype=torch.float64, generator=stream),
        torch.randn(2, 3, 2, dtype=torch.float64, generator=stream),
    )
    assert made(s, a).shape == (2, 2, 3, 3)
    assert made(s[0, 0], a[0, 0]).shape == (2, 3)
    assert torch.allclose(made(s, a)[:, 1, 2], made(s[1, 2], a[1, 2]))
    small = swollen(1, 5.0, hidden=3, smooth=2, free=1, outputs=2)
    inputs = (
        torch.randn(4, 2, dtype=torch.float64, generator=stream),
        torch.randn(4, 1, dtype=torch.float64, generator=stream),
    )
    names, weights = zip(*small.named_parameters(), strict=True)
    assert torch.autograd.gradcheck(
        lambda *w: torch.func.functional_call(small, dict(zip(names, w, strict=True)), inputs), weights
    )


def own(made: LipschitzNetwork, index: int) -> dict[str, Tensor]:
    return {name: weight.detach()[index].clone() for name, weight in made.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("constants", [(1.0, 0.1), (None, None), (1.0, None)])
def test_own_weights_stay_as_they_are(constants: tuple[float | None, ...], dtype: torch.dtype):
    drawn = swollen(4, 6.0)
    drawn.finish()
    drawn.to(dtype)
    given = {"h": own(drawn, 0), "phi": own(drawn, 1)}
    if constants[1] is None:
        given["phi"]["inner"] *= 1.00009
    made = LipschitzNetwork.from_tensors(given, constants)
    assert not made.training
    norms = []
    with torch.no_grad():
        inner, outer, root = made.weights()
    for place, weights in enumerate(given.values()):
        assert torch.equal(inner[place], weights["inner"])
        assert torch.equal(outer[place], weights["outer"])
        norms.append(
            float(
                torch.linalg.matrix_norm(weights["inner"].double(), 2)
                * torch.linalg.matrix_norm(weights["outer"].double(), 2)
            )
        )
        for name in ("action", "bias", "shift"):
            assert torch.equal(made.get_parameter(name)[place], weights[name])
    assert made.lipschitz().tolist() == pytest.approx(
        [norm * (constant or 1.0) for norm, constant in zip(norms, constants, strict=True)], rel=1e-6
    )
    assert root.dtype == dtype


def test_own_weights_that_a_constant_would_divide_are_refused():
    drawn = swollen(4, 6.0)
    drawn.finish()
    given = {"h": own(drawn, 0), "phi": own(drawn, 1)}
    given["h"]["inner"] *= 1.00009 / torch.linalg.matrix_norm(given["h"]["inner"], 2)
    with pytest.raises(
        ValueError,
        match=r"h: expected weights of spectral norm at most 1 .* constant of 1; got 1\.00009 for .* norms "
        r"is 1\.00008",
    ):
        LipschitzNetwork.from_tensors(given, (1.0, 0.1))
    assert LipschitzNetwork.from_tensors(given, (None, 0.1)).lipschitz()[0].item() == pytest.approx(
        1.00009, abs=2e-7
    )
    with pytest.raises(
        ValueError,
        match=r"phi: outer: expected finite numbers of shape \(3, 16\) and torch.float64, .*; got shape \(3, "
        r"4\)",
    ):
        LipschitzNetwork.from_tensors(
            {**given, "phi": {**given["phi"], "outer": given["phi"]["outer"][:, :4]}}, (None, None)
        )
    with pytest.raises(ValueError, match=r"bias: .*not all finite"):
        LipschitzNetwork.from_tensors(
            {**given, "phi": {**given["phi"], "bias": given["phi"]["bias"] / 0}}, (None, None)
        )


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


def test_the_likelihood_of_some_values_is_their_marginal_density():
    made = mechanism()
    parents, values = draws(3, 40, 8, 3)
    unknown = torch.rand(values.shape, generator=torch.Generator().manual_seed(4)) < 0.4
    found = made.log_likelihood(parents, values.masked_fill(unknown, torch.nan))
    location, scale = made.moments(parents)
    root = made.cholesky().detach()
    for row, hidden in enumerate(unknown):
        seen = (~hidden).nonzero()[:, 0]
        spread = torch.diag(scale[row]) @ root @ root.mT @ torch.diag(scale[row])
        wanted = torch.zeros((), dtype=torch.float64)
        if len(seen):
            normal = torch.distributions.MultivariateNormal(location[row][seen], spread[seen][:, seen])
            wanted = normal.log_prob(values[row][seen])
        torch.testing.assert_close(found[row], wanted)
    torch.testing.assert_close(
        made._density(parents, values, torch.ones_like(unknown)), made.log_likelihood(parents, values)
    )
    ((_, examples),) = made.parts(parents, values.masked_fill(unknown, torch.nan))
    made.loss(*examples).backward()
    torch.testing.assert_close(made.loss(*examples), -found.mean())
    assert all(weight.grad.isfinite().all() for weight in made.parameters())


def test_the_scale_is_at_least_the_floor():
    made = LocationScale(2, 1, 2, hidden=4, floor=0.05).double()
    with torch.no_grad():
        made.networks.shift[1] = -1e4
    assert torch.equal(
        made.moments(torch.zeros(3, 3, dtype=torch.float64))[1], torch.full((3, 2), 0.05, dtype=torch.float64)
    )


def test_own_weights_and_noise_stay_as_they_are():
    drawn = mechanism().double()
    drawn.finish()
    location, scale = (
        {name: weight.detach()[place].clone() for name, weight in drawn.networks.named_parameters()}
        for place in (0, 1)
    )
    triangle = drawn.cholesky().detach()
    own = LocationScale.from_tensors(location, scale, triangle, 1.0, 0.1)
    parents, noise = draws(1, 7, 8, 3)
    with torch.no_grad():
        assert torch.equal(own(parents, noise), drawn(parents, noise))
    assert torch.allclose(own.cholesky(), triangle, rtol=1e-15, atol=0)
    location["inner"] = location["inner"] * 3
    with pytest.raises(ValueError, match="location: expected weights of spectral norm at most 1"):
        LocationScale.from_tensors(location, scale, triangle, 1.0, 0.1)
    steep = LocationScale.from_tensors(location, scale, triangle)
    norms = [
        torch.linalg.matrix_norm(each[name], 2) for each in (location, scale) for name in ("inner", "outer")
    ]
    assert steep.lipschitz(torch.tensor([2.0, -3.0, 1.0])).item() == pytest.approx(
        float(norms[0] * norms[1] + 3 * norms[2] * norms[3])
    )
    for wrong in (triangle.mT + 1, -triangle, triangle[:1]):
        with pytest.raises(ValueError, match="cholesky: expected a lower triangle"):
            LocationScale.from_tensors(location, scale, wrong)


@pytest.mark.slow
def test_training_recovers_a_location_scale_law():
    """v = 0.6 s + 0.3 a + (0.1 + 0.05 s) u, u ~ N(0, 1): location and total scale come back."""
    stream = torch.Generator().manual_seed(0)
    parents = torch.rand(4000, 2, generator=stream) - 0.5
    spread = 0.1 + 0.05 * parents[:, :1]
    truth = 0.6 * parents[:, :1] + 0.3 * parents[:, 1:]
    values = truth + spread * torch.randn(4000, 1, generator=stream)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = LocationScale(1, 1, 1, hidden=32, location_constant=1.0, scale_constant=1.0)
    for rate in (5e-3, 5e-4):
        Descent(max_epochs=20, batch_size=128, learning_rate=rate, progress=False).train(
            made, (parents, values)
        )
    location, scale = (moment.detach() for moment in made.moments(parents))
    assert (location - truth).abs().mean() < 0.01
    assert ((scale * made.cholesky().detach() - spread) / spread).abs().mean() < 0.1
    best = 0.5 * math.log(2 * math.pi * math.e) + spread.log().mean().item()
    assert made.loss(parents, values).item() == pytest.approx(best, abs=0.03)


def test_a_network_without_a_constant_is_unconstrained():
    made = network(constants=(None, 0.5)).double()
    with torch.no_grad():
        made.inner *= 10
    inner, _, root = made.weights()
    assert torch.equal(inner[0], made.inner[0])
    assert torch.linalg.matrix_norm(inner[1], 2).item() == pytest.approx(1.0)
    assert root.flatten().tolist() == [1.0, pytest.approx(0.5**0.5)]
    expected = torch.linalg.matrix_norm(made.inner[0].detach(), 2) * torch.linalg.matrix_norm(
        made.outer[0].detach(), 2
    )
    assert made.lipschitz()[0].item() == pytest.approx(expected.item())
    stored = made.inner[0].clone()
    made.finish()
    assert torch.equal(made.inner[0], stored)
    free = network(constants=(None, None))
    assert free.weights()[0] is free.inner


def test_noise_has_the_covariance_sigma():
    made = mechanism(5)
    torch.manual_seed(0)
    drawn = made.noise((200, 500)).detach().reshape(-1, 3)
    expected = (made.cholesky() @ made.cholesky().mT).detach()
    spread = expected.diagonal().sqrt()
    assert ((torch.cov(drawn.T) - expected).abs() <= 0.03 * spread[:, None] * spread).all()
    assert (drawn.mean(0).abs() <= 0.03 * spread).all()
