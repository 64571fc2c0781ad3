"""What every surrogate over episodes promises: parts that can be fitted, a state that says everything, a
course that begins and ends as observed.

Surrogates with a task stand under a contract of their own, test_rehearsal_surrogates.
"""

from collections.abc import Callable
from functools import cache, partial

import pytest
import torch

from rehearsal_torch.data.trainable_part import Solved, Trained
from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.surrogates.transition_ridge import TransitionRidge
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.places import concrete
from tests.toys.rehearsal_methods import CAUSAL, SURROGATES, configuration
from tests.toys.transitions import CONTEXTUAL, DOSES, NAMES, STATIC, VARYING, model, observations, patients

CASES: dict[str, Callable[[int], EpisodeSurrogate]] = {
    "TransitionModel": lambda seed: model(seed=seed),
    "TransitionModel, unconstrained": lambda seed: model(
        location_constant=None, scale_constant=None, seed=seed
    ),
    "TransitionModel, sparse": lambda seed: model(seed=seed, effects="sparse"),
    "TransitionEnsemble": lambda seed: TransitionEnsemble(
        partial(model, seed=seed, effects="sparse"), 2, seed
    ),
    "TransitionRidge": lambda seed: TransitionRidge(VARYING, STATIC, CONTEXTUAL, DOSES, 3, seed=seed),
}
every = pytest.mark.parametrize("name", CASES)


@cache
def fitted(name: str) -> EpisodeSurrogate:
    """Not to be changed."""
    return fit(CASES[name](0), observations(), Descent(max_epochs=2, progress=False))


def test_every_surrogate_of_the_package_stands_under_this_contract_or_the_one_for_tasks():
    classes = concrete("rehearsal_torch.surrogates", Surrogate)
    with_a_task = {
        configuration("surrogate", name)["_target_"].rpartition(".")[2] for name in [*SURROGATES, *CAUSAL]
    }
    # One holds surrogates of one method each, and is compared with them in
    # tests/surrogates/test_imputation_ensemble.py; the other has numbered states, and rows of its own
    # (tests/surrogates/test_gumbel_transition.py).
    holding = {"ImputedSurrogate", "GumbelTransition"}
    assert {each.__name__ for each in classes} == {
        name.split(",")[0] for name in CASES
    } | with_a_task | holding
    silent = [each.__name__ for each in classes if Surrogate.question in (each.question, None)]
    assert silent == [], "it must say which question it was fitted for"


@every
def test_parts_are_solved_or_trained_in_order_and_each_is_part_of_the_state(name: str):
    made, table = CASES[name](0), observations()
    inside = set(map(id, made.modules()))
    seen = 0
    for part, examples in made.parts(table):
        assert isinstance(part, Solved | Trained)
        assert id(part) in inside
        assert examples
        assert len({len(example) for example in examples}) == 1
        if isinstance(part, Solved):
            part.solve(*examples)
        else:
            loss = part.loss(*examples)
            assert loss.ndim == 0
            assert torch.isfinite(loss)
            part.finish()
        seen += 1
    assert seen > 0


@every
def test_the_state_says_everything(name: str):
    one, other = fitted(name), CASES[name](1)
    other.load_state_dict(one.state_dict())
    (episode,) = patients(1, 5, seed=7)
    actions = torch.randint(
        one.trajectory(episode).actions, (10, 4), generator=torch.Generator().manual_seed(0)
    )
    assert torch.equal(replay(one.trajectory(episode), actions), replay(other.trajectory(episode), actions))
    assert torch.equal(one.state_scale(), other.state_scale())
    assert torch.equal(one.doses(actions), other.doses(actions))


@every
def test_nothing_changed_gives_the_observed_episode_in_its_units(name: str):
    made = fitted(name)
    for episode in patients(5, 7, seed=3):
        trajectory = made.trajectory(episode)
        again = replay(trajectory, trajectory.observed[None])[0]
        assert torch.allclose(again, trajectory.states, atol=1e-10)
        assert torch.allclose(made.units(again), episode.columns(made.names), atol=1e-8)


@every
def test_courses_are_double_precision_without_gradients_and_leave_the_random_state_alone(name: str):
    made = fitted(name)
    (episode,) = patients(1, 5, seed=3)
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    trajectory = made.trajectory(episode)
    assert torch.equal(torch.rand(2), expected)
    assert trajectory.states.dtype == torch.float64
    assert not trajectory.branch(trajectory.states[:2], 0).requires_grad
    assert trajectory.states.shape == (5, made.members * len(made.names))
    assert set(made.names) <= set(NAMES)


@every
def test_the_slope_bounds_what_a_step_in_coordinates_is_worth(name: str):
    made = fitted(name)
    here, there = torch.randn(
        2, 50, made.members * len(made.names), dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    moved = (made.units(here) - made.units(there)).abs()
    apart = (here - there).abs().unflatten(-1, (made.members, -1)).mean(-2)
    assert (moved <= made.state_scale() * apart * (1 + 1e-12) + 1e-12).all()


@every
def test_the_observed_doses_level_is_the_observed_action(name: str):
    made = fitted(name)
    (episode,) = patients(1, 6, seed=3)
    trajectory = made.trajectory(episode)
    given = episode.columns(("vaso", "fluid")) > 0
    assert torch.equal(made.doses(trajectory.observed) > 0, given)
    assert made.doses(torch.arange(trajectory.actions)).unique(dim=0).shape == (trajectory.actions, 2)
