import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rehearsal_torch.mechanisms.lipschitz_network import LipschitzNetwork, spectral_norm


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


def test_the_exact_copy_draws_nothing_and_has_its_own_weights():
    made = network()
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    copy = made.exact()
    assert torch.equal(torch.rand(1), expected)
    assert copy.inner.dtype == torch.float64
    assert not any(weight.requires_grad for weight in copy.parameters())
    assert made.inner.dtype == torch.float32
    assert made.inner.requires_grad


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
    with pytest.raises(
        ValueError, match="h: expected the tensors inner, action, bias, outer, shift; got inner"
    ):
        LipschitzNetwork.from_tensors({"h": {"inner": given["h"]["inner"]}}, (None,))
