import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.training.descent import Descent


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


def test_the_scale_is_at_least_the_floor():
    made = LocationScale(2, 1, 2, hidden=4, floor=0.05).double()
    with torch.no_grad():
        made.networks.shift[1] = -1e4
    assert torch.equal(
        made.moments(torch.zeros(3, 3, dtype=torch.float64))[1], torch.full((3, 2), 0.05, dtype=torch.float64)
    )


def test_noise_has_the_covariance_sigma():
    made = mechanism(5)
    torch.manual_seed(0)
    drawn = made.noise((200, 500)).detach().reshape(-1, 3)
    expected = (made.cholesky() @ made.cholesky().mT).detach()
    spread = expected.diagonal().sqrt()
    assert ((torch.cov(drawn.T) - expected).abs() <= 0.03 * spread[:, None] * spread).all()
    assert (drawn.mean(0).abs() <= 0.03 * spread).all()


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


@pytest.mark.parametrize("wrong", [{"outputs": 4}, {"floor": 0.0}])
def test_impossible_settings_are_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match="outputs <= smooth and a positive floor"):
        LocationScale(**{"smooth": 3, "free": 1, "outputs": 2, **wrong})


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
