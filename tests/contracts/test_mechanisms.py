"""What every mechanism of the package promises: forward and abduct are inverse, shapes (..., p) and (..., d)
broadcast, gradients flow, a belief has a mean and a standard deviation, a state gives everything."""

from collections.abc import Callable
from functools import cache

import pytest
import torch

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.mechanism import Mechanism, NodeMechanism, TransitionMechanism, replay
from rehearsal_torch.mechanisms.sparse_effects import SparseEffects
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural.flow_scm import LinearFlow
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import concrete
from tests.toys.noisy_nodes import CHAIN, chain

PARENTS = 5
# Rooms that may hold mechanisms: none below knows the class, none above learns anything.
ROOMS = ("mechanisms", "surrogates", "objectives", "search")


def least_squares() -> LinearGaussian:
    made = LinearGaussian(PARENTS, 2)
    parents = torch.randn(30, PARENTS, dtype=torch.float64)
    slopes = torch.randn(PARENTS, 2, dtype=torch.float64)
    made.solve(parents, parents @ slopes + torch.randn(30, 2, dtype=torch.float64))
    return made


def flow() -> ConditionalFlow:
    """Not as it begins, which is the identity."""
    made = ConditionalFlow(PARENTS, 2, hidden=(8,), bins=4)
    with torch.no_grad():
        for weights in made.parameters():
            weights += 0.3 * torch.randn_like(weights)
    return made.double()


def node(**options: object) -> NodeMechanism:
    """The mechanism of X given a, b and R, fitted to a table."""
    table = chain(45, int(torch.randint(2**20, ()).item()))
    return fit(ExogenousModel(CHAIN, **options), table).network().mechanisms[1]


def sparse() -> SparseEffects:
    """One contextual feature and one dose."""
    made = SparseEffects(LocationScale(3, 1, 2, hidden=8).double(), 1)
    made.effects.coefficients = torch.randn(2, 3, 3, dtype=torch.float64)
    return made


CASES: dict[str, Callable[[], Mechanism]] = {
    "LocationScale": lambda: LocationScale(3, 2, 2, hidden=8).double(),
    "LocationScale, unconstrained": lambda: LocationScale(
        3, 2, 2, hidden=8, location_constant=None, scale_constant=None
    ).double(),
    "SparseEffects": sparse,
    "LinearGaussian": least_squares,
    "ConditionalFlow": flow,
    "LinearFlow": lambda: LinearFlow(least_squares(), flow()),
    "LinearFlow, without a flow": lambda: LinearFlow(least_squares(), None),
    "ClosedForm": node,
    "ClosedForm, predictive": lambda: node(scale="predictive", phi="homoskedastic"),
    "Decoded": lambda: node(phi="homoskedastic", decoder="gp", scale="predictive"),
}
every = pytest.mark.parametrize("name", CASES)


@cache
def seeded(name: str, seed: int) -> Mechanism:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return CASES[name]()


def widths(made: Mechanism) -> tuple[int, int]:
    """p and d."""
    return (3, 1) if isinstance(made, NodeMechanism) else (PARENTS, 2)


def rows(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def arguments(made: Mechanism, *lead: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Parents and noise; those of nodes lie in the unit cube."""
    p, d = widths(made)
    parents = rows(seed, *lead, p)
    return parents.sigmoid() if isinstance(made, NodeMechanism) else parents, rows(seed + 1, *lead, d)


def test_every_mechanism_of_the_package_stands_under_this_contract():
    found = set.union(*(concrete(f"rehearsal_torch.{room}", Mechanism) for room in ROOMS))
    assert {each.__name__ for each in found} == {name.split(",")[0] for name in CASES}
    for name in CASES:
        assert type(seeded(name, 0)).__name__ == name.split(",")[0]


@every
def test_forward_and_abduct_are_inverse(name: str):
    made = seeded(name, 0)
    parents, noise = arguments(made, 40)
    values = made.forward(parents, noise)
    if name == "Decoded":
        # An estimate: the noise comes back by and large, within what the observations cover.
        back = made.abduct(parents, values)
        assert float(torch.corrcoef(torch.cat([back, noise], -1).T)[0, 1]) > 0.9
        return
    assert torch.allclose(made.abduct(parents, values), noise, atol=1e-9)
    others = values.flip(0)
    assert torch.allclose(made.forward(parents, made.abduct(parents, others)), others, atol=1e-9)


@every
def test_leading_dimensions_are_kept_and_broadcast(name: str):
    made = seeded(name, 0)
    p, d = widths(made)
    parents, noise = arguments(made, 2, 3)
    joined = made.forward(parents, noise)
    assert joined.shape == (2, 3, d)
    assert torch.allclose(made.forward(parents[1, 2], noise[1, 2]), joined[1, 2])
    assert torch.allclose(made.abduct(parents[0], joined[0]), made.abduct(parents, joined)[0], atol=1e-10)
    assert made.forward(parents[:, :0], noise[:, :0]).shape == (2, 0, d)
    for both in (made.forward, made.abduct):
        crossed = both(parents[:, :1], noise[0])
        assert crossed.shape == (2, 3, d)
        assert torch.allclose(crossed[1, 2], both(parents[1, 0], noise[0, 2]))
        assert torch.allclose(both(parents[0, 0], noise), both(parents[0, 0].expand(2, 3, p), noise))


@every
def test_gradients_reach_parents_and_noise(name: str):
    made = seeded(name, 0)
    parents, noise = arguments(made, 3)
    given = (parents.requires_grad_(), noise.requires_grad_())
    assert torch.autograd.gradcheck(made.forward, given)
    assert torch.autograd.gradcheck(made.abduct, given)


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(seeded(name, 0), NodeMechanism)])
def test_a_belief_is_forward_with_a_standard_deviation(name: str):
    made = seeded(name, 0)
    assert isinstance(made, NodeMechanism)
    parents, noise = arguments(made, 4, 1)
    noise = noise[:1].expand(4, 3, 1) + torch.arange(3).double()[:, None]
    mean, std = made.belief(parents, noise)
    assert torch.allclose(mean, made.forward(parents, noise), rtol=1e-12, atol=1e-12)
    assert std.shape[-1] == 1
    assert torch.broadcast_shapes(std.shape, mean.shape) == mean.shape == (4, 3, 1)
    assert bool((std >= 0).all())
    assert torch.autograd.gradcheck(made.belief, (parents.requires_grad_(), noise.requires_grad_()))
    # Far from all observations nothing is known: the standard deviation is larger there than among them.
    far, near = parents.detach() + 50, parents.detach()
    assert bool((made.belief(far, noise)[1] > made.belief(near, noise)[1]).all())


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(seeded(name, 0), TransitionMechanism)])
def test_everything_but_noise_is_deterministic_and_noise_follows_the_seed(name: str):
    made = seeded(name, 0)
    assert isinstance(made, TransitionMechanism)
    torch.manual_seed(1)
    first = made.noise((4, 3))
    torch.manual_seed(1)
    made.abduct(*arguments(made, 4))
    made.forward(*arguments(made, 4))
    assert first.shape == (4, 3, widths(made)[1])
    assert torch.equal(made.noise((4, 3)), first)
    assert not torch.equal(made.noise((4, 3)), first)


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(seeded(name, 0), torch.nn.Module)])
def test_the_state_gives_everything(name: str):
    one, other = seeded(name, 0), seeded(name, 1)
    assert isinstance(one, torch.nn.Module)
    assert isinstance(other, torch.nn.Module)
    parents, noise = arguments(one, 4)
    assert not torch.allclose(one.forward(parents, noise), other.forward(parents, noise))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.forward(parents, noise), other.forward(parents, noise))


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(seeded(name, 0), TransitionMechanism)])
def test_a_transition_mechanism_unrolls_to_the_episode_it_saw(name: str):
    made = seeded(name, 0)
    assert isinstance(made, TransitionMechanism)
    states, observed = rows(4, 6, 2), torch.tensor([0, 2, 1, 1, 0, 2])
    trajectory = made.unroll(states, rows(5, 5, 3, PARENTS - 2), observed)
    assert (trajectory.horizon, trajectory.actions) == (6, 3)
    assert torch.allclose(replay(trajectory, observed[None])[0], states, atol=1e-10)
