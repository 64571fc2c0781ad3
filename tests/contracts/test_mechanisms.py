"""What every mechanism promises: forward and abduct are inverse, batches of any shape, noise as drawn, a
state that says everything."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import pytest
import torch

import rehearsal_torch.mechanisms
from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.mechanism import Mechanism, TransitionMechanism
from rehearsal_torch.mechanisms.trajectory import replay

PARENTS, WIDTH = 5, 2


def seeded(make: Callable[[], Mechanism], seed: int) -> Mechanism:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make().double()


def least_squares() -> Mechanism:
    made = LinearGaussian(PARENTS, WIDTH)
    parents = torch.randn(30, PARENTS, dtype=torch.float64)
    made.solve(
        parents,
        parents @ torch.randn(PARENTS, WIDTH, dtype=torch.float64)
        + torch.randn(30, WIDTH, dtype=torch.float64),
    )
    return made


def flow() -> Mechanism:
    """Not as it begins, which is the identity."""
    made = ConditionalFlow(PARENTS, WIDTH, hidden=(8,), bins=4)
    with torch.no_grad():
        for weights in made.parameters():
            weights += 0.3 * torch.randn_like(weights)
    return made


CASES: dict[str, Callable[[], Mechanism]] = {
    "LocationScale": lambda: LocationScale(3, 2, WIDTH, hidden=8),
    "LinearGaussian": least_squares,
    "ConditionalFlow": flow,
    "LocationScale, unconstrained": lambda: LocationScale(
        3, 2, WIDTH, hidden=8, location_constant=None, scale_constant=None
    ),
}
every = pytest.mark.parametrize("name", CASES)


def rows(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_every_mechanism_of_the_package_stands_under_this_contract():
    modules = [
        import_module(f"rehearsal_torch.mechanisms.{found.name}")
        for found in iter_modules(rehearsal_torch.mechanisms.__path__)
    ]
    classes = {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Mechanism)
    }
    concrete = {found.__name__ for found in classes if not inspect.isabstract(found)}
    assert concrete == {name.split(",")[0] for name in CASES}


@every
def test_forward_and_abduct_are_inverse(name: str):
    made = seeded(CASES[name], 0)
    parents, noise, values = rows(1, 40, PARENTS), rows(2, 40, WIDTH), rows(3, 40, WIDTH)
    assert torch.allclose(made.abduct(parents, made(parents, noise)), noise, atol=1e-10)
    assert torch.allclose(made(parents, made.abduct(parents, values)), values, atol=1e-10)


@every
def test_batches_of_any_shape(name: str):
    made = seeded(CASES[name], 0)
    parents, noise = rows(1, 2, 3, PARENTS), rows(2, 2, 3, WIDTH)
    together = made(parents, noise)
    assert together.shape == (2, 3, WIDTH)
    assert torch.allclose(made(parents[1, 2], noise[1, 2]), together[1, 2])
    assert torch.allclose(made.abduct(parents[0], together[0]), noise[0], atol=1e-10)
    assert made(parents[:, :0], noise[:, :0]).shape == (2, 0, WIDTH)


@every
def test_everything_but_noise_is_deterministic_and_noise_follows_the_seed(name: str):
    made = seeded(CASES[name], 0)
    torch.manual_seed(1)
    first = made.noise((4, 3))
    torch.manual_seed(1)
    made(rows(1, 4, PARENTS), rows(2, 4, WIDTH))
    made.abduct(rows(1, 4, PARENTS), rows(2, 4, WIDTH))
    assert first.shape == (4, 3, WIDTH)
    assert torch.equal(made.noise((4, 3)), first)
    assert not torch.equal(made.noise((4, 3)), first)


@every
def test_gradients_reach_parents_and_noise(name: str):
    made = seeded(CASES[name], 0)
    parents, noise = rows(1, 3, PARENTS).requires_grad_(), rows(2, 3, WIDTH).requires_grad_()
    assert torch.autograd.gradcheck(made, (parents, noise))
    assert torch.autograd.gradcheck(made.abduct, (parents, noise))


@every
def test_the_state_says_everything(name: str):
    one, other = seeded(CASES[name], 0), seeded(CASES[name], 1)
    parents, noise = rows(1, 4, PARENTS), rows(2, 4, WIDTH)
    assert not torch.allclose(one(parents, noise), other(parents, noise))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(parents, noise), other(parents, noise))


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(CASES[name](), TransitionMechanism)])
def test_a_transition_mechanism_unrolls_to_the_episode_it_saw(name: str):
    made = seeded(CASES[name], 0)
    assert isinstance(made, TransitionMechanism)
    states, observed = rows(4, 6, WIDTH), torch.tensor([0, 2, 1, 1, 0, 2])
    course = made.unroll(states, rows(5, 5, 3, PARENTS - WIDTH), observed)
    assert (course.horizon, course.actions) == (6, 3)
    assert torch.allclose(replay(course, observed[None])[0], states, atol=1e-10)
