"""Theorem 3: element-wise bijective SCMs with the same transition distributions have the same
counterfactuals.

The theorem's boundary is tested with it: an SCM that turns the noise (not element-wise) fits the same
distributions and answers differently, as the paper says; and so does an element-wise one that turns the
direction of its monotonicity from one action to another, which the proof (App. C) takes not to happen.

Source: Tsirtsis and Gomez-Rodriguez (2023), Thm. 3, Thm. 9 and Sec. 2.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rehearsal_torch.mechanisms.location_scale import LocationScale

WIDTH = 2


@dataclass(frozen=True)
class Model:
    """A bijective SCM: g, its inverse in the noise, and draws of its noise."""

    forward: Callable[[Tensor, Tensor], Tensor]
    abduct: Callable[[Tensor, Tensor], Tensor]
    noise: Callable[[int], Tensor]

    def counterfactual(self, parents: Tensor, values: Tensor, other: Tensor) -> Tensor:
        """What would have followed `other`, given that `values` followed `parents`."""
        return self.forward(other, self.abduct(parents, values))


def truth(seed: int) -> tuple[Model, Tensor]:
    """A location-scale SCM with correlated normal noise, and Sigma's factor."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = LocationScale(WIDTH, 1, WIDTH, hidden=16).double().requires_grad_(False)
        made.networks.inner *= 3
        made.factor.copy_(torch.randn(WIDTH, WIDTH) * 0.5)
        made.factor[1, 0] = 0.8
    return Model(made, made.abduct, lambda count: made.noise((count,))), made.cholesky()


def reparameterised(model: Model, to: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> Model:
    """The SCM over w = back(u), where u = to(w) element by element: another mechanism, another noise, the
    same transitions."""
    return Model(
        lambda p, w: model.forward(p, to(w)),
        lambda p, v: back(model.abduct(p, v)),
        lambda count: back(model.noise(count)),
    )


WEIGHTS = torch.tensor([0.25, -3.0], dtype=torch.float64)
ELEMENTWISE: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "mirrored": (lambda w: -w, lambda u: -u),
    "scaled, one coordinate mirrored": (lambda w: w * WEIGHTS, lambda u: u / WEIGHTS),
    "cubed": (lambda w: w.sign() * w.abs() ** (1 / 3), lambda u: u**3),
    "uniform": (lambda w: 4 * torch.special.ndtri(w), lambda u: torch.special.ndtr(u / 4)),
    "hyperbolic, falling": (lambda w: torch.sinh(-w), lambda u: -torch.asinh(u)),
}


def draws(seed: int, count: int) -> tuple[Tensor, Tensor]:
    stream = torch.Generator().manual_seed(seed)
    first, second = (torch.randn(count, WIDTH + 1, generator=stream, dtype=torch.float64) for _ in range(2))
    return first, second


@pytest.mark.parametrize("name", ELEMENTWISE)
@given(seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_reparameterised_noise_gives_the_same_counterfactuals(name: str, seed: int):
    one, _ = truth(seed)
    other = reparameterised(one, *ELEMENTWISE[name])
    parents, elsewhere = draws(seed, 100)
    torch.manual_seed(seed)
    values = one.forward(parents, one.noise(100).clamp(-4, 4))
    assert torch.allclose(
        one.counterfactual(parents, values, elsewhere),
        other.counterfactual(parents, values, elsewhere),
        atol=1e-6,
    )
    assert torch.allclose(other.counterfactual(parents, values, parents), values, atol=1e-6)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_their_noises_differ_and_their_transitions_do_not(name: str):
    one, factor = truth(1)
    other = reparameterised(one, *ELEMENTWISE[name])
    parents = draws(0, 1)[0]
    torch.manual_seed(0)
    first, second = one.forward(parents, one.noise(40_000)), other.forward(parents, other.noise(40_000))
    same_distribution(first, second)
    noises = other.noise(40_000)
    assert (
        (torch.cov(noises.T) - factor @ factor.mT).abs().max() > 0.05
        or noises.mean(0).abs().max() > 0.05
        or name == "mirrored"
    )


def test_two_location_scale_mechanisms_with_the_same_law_agree():
    """The scale of phi against that of Sigma is not identified; the counterfactuals are."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        one = LocationScale(WIDTH, 1, WIDTH, hidden=8, floor=1e-12).double().requires_grad_(False)
    other = LocationScale(WIDTH, 1, WIDTH, hidden=8, floor=1e-12).double().requires_grad_(False)
    other.load_state_dict(one.state_dict())
    for made, wanted in ((one, torch.tensor([0.5, 2.0])), (other, torch.tensor([1.5, 0.25]))):
        made.networks.outer[1] = 0.0  # a constant phi, of which softplus(c shift) is any positive number
        made.networks.shift[1] = torch.log(torch.expm1(wanted.double())) / 0.1**0.5
        made.factor.copy_(
            torch.tensor([[0.0, 0.0], [0.3, 0.0]]) / wanted[:, None] + torch.diag(-wanted.log())
        )
    parents, elsewhere = draws(5, 50)
    values = one(parents, torch.ones(50, WIDTH, dtype=torch.float64) * 0.7)
    assert not torch.allclose(one.abduct(parents, values), other.abduct(parents, values), atol=0.1)
    assert torch.allclose(
        one.log_likelihood(parents, values), other.log_likelihood(parents, values), atol=1e-5
    )
    apart = one(elsewhere, one.abduct(parents, values)) - other(elsewhere, other.abduct(parents, values))
    assert apart.abs().max() < 1e-6


def rotated(one: Model, factor: Tensor) -> Model:
    """White noise w turned by an angle that depends on the action: u = C R(a) w with w ~ N(0, I), hence u ~
    N(0, C C')."""

    def turn(parents: Tensor) -> Tensor:
        angle = parents[:, -1]
        rows = torch.stack([torch.cos(angle), -torch.sin(angle), torch.sin(angle), torch.cos(angle)], -1)
        return factor @ rows.reshape(-1, 2, 2)

    return Model(
        lambda p, w: one.forward(p, (turn(p) @ w.unsqueeze(-1)).squeeze(-1)),
        lambda p, v: torch.linalg.solve(turn(p), one.abduct(p, v).unsqueeze(-1)).squeeze(-1),
        lambda count: torch.randn(count, WIDTH, dtype=torch.float64),
    )


def test_turned_noise_has_the_same_transitions_and_other_counterfactuals():
    one, factor = truth(2)
    other = rotated(one, factor)
    for seed in range(3):
        parents = draws(seed, 1)[0]
        torch.manual_seed(seed)
        expanded = parents.expand(40_000, -1)
        same_distribution(
            one.forward(expanded, one.noise(40_000)), other.forward(expanded, other.noise(40_000))
        )
    parents, elsewhere = draws(9, 200)
    torch.manual_seed(4)
    values = one.forward(parents, one.noise(200))
    assert torch.allclose(other.forward(parents, other.abduct(parents, values)), values, atol=1e-9)
    apart = one.counterfactual(parents, values, elsewhere) - other.counterfactual(parents, values, elsewhere)
    assert apart.abs().mean() > 0.1
    # Nothing differs where the action, and with it the angle, stays what it was.
    kept = torch.cat([elsewhere[:, :-1], parents[:, -1:]], -1)
    assert torch.allclose(
        one.counterfactual(parents, values, kept), other.counterfactual(parents, values, kept), atol=1e-9
    )


def test_the_direction_of_monotonicity_must_not_depend_on_the_action():
    """With the noise's sign turned under some actions only, the transitions stay (N(0, Sigma) is symmetric)
    and the counterfactuals are mirrored.

    Such an SCM is element-wise bijective by Def. 8, so the theorem needs the rider that its proof uses: each
    g_i rises in u_i under every state and action, or falls under every one.
    """
    one, _ = truth(2)

    def sign(parents: Tensor) -> Tensor:
        return torch.where(parents[:, -1:] > 0, 1.0, -1.0)

    other = Model(
        lambda p, w: one.forward(p, sign(p) * w), lambda p, v: sign(p) * one.abduct(p, v), one.noise
    )
    parents, elsewhere = draws(9, 200)
    for row in parents[:3]:
        torch.manual_seed(0)
        expanded = row.expand(40_000, -1)
        same_distribution(
            one.forward(expanded, one.noise(40_000)), other.forward(expanded, other.noise(40_000))
        )
    torch.manual_seed(4)
    values = one.forward(parents, one.noise(200))
    apart = (
        one.counterfactual(parents, values, elsewhere) - other.counterfactual(parents, values, elsewhere)
    ).norm(dim=-1)
    turned = (sign(parents) != sign(elsewhere)).squeeze(-1)
    assert apart[turned].mean() > 0.5
    assert apart[~turned].max() < 1e-9


def same_distribution(first: Tensor, second: Tensor) -> None:
    """Two samples of 40,000 agree in mean and covariance, and in their quantiles along three directions,
    within sampling error."""
    spread = first.std(0)
    assert ((first.mean(0) - second.mean(0)).abs() < 0.04 * spread).all()
    assert ((torch.cov(first.T) - torch.cov(second.T)).abs() < 0.05 * spread[:, None] * spread).all()
    levels = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95], dtype=torch.float64)
    for direction in torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8]], dtype=torch.float64):
        one, other = (torch.quantile(sample @ direction, levels) for sample in (first, second))
        assert ((one - other).abs() < 0.06 * (first @ direction).std()).all()
