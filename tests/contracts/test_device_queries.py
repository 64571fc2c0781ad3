"""What a fitted model itself is asked (noise, samples, likelihoods, draws, a refit, a file) has the same
answer when it was moved to another device, and the answer is where the question is.

As in test_devices.py, the device is a stand-in in memory, or a GPU with ``--device cuda``.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision, EpisodeCase, RehearsalCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.mechanism import TransitionMechanism
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural_counterfactuals import counterfactual, recover, sample
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.surrogates.transition_ridge import TransitionRidge
from rehearsal_torch.training.cross_validation import clinical_log_likelihood
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.contracts.test_devices import moved, same
from tests.contracts.test_mechanisms import CASES, seeded
from tests.toys.fitted_pair import fitted_pair, pair_table
from tests.toys.linear_truth import chain
from tests.toys.place import Place
from tests.toys.rehearsal_methods import learnt_here
from tests.toys.transitions import CONTEXTUAL, DOSES, STATIC, VARYING, model, observations, patients

WORLD = chain()
TABLE = WORLD.table(60)
DOUBLE = torch.float64
GIVEN = torch.tensor([0.3], dtype=DOUBLE)
ACTION = torch.tensor([0.5], dtype=DOUBLE)
# Others have noise that their models draw.
GENERATIVE = [name for name in CASES if name.startswith(("LocationScale", "SparseEffects"))]


def close(one: Tensor, other: Tensor, place: Place, scale: float = 1.0) -> None:
    """Equal values, both on the CPU."""
    assert other.device.type == "cpu"
    assert other.dtype == one.dtype
    assert torch.allclose(one, other, rtol=scale * place.value, atol=scale * place.value, equal_nan=True)


def at_seed(ask: Callable[[], Tensor]) -> Tensor:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return ask()


@pytest.mark.parametrize("name", GENERATIVE)
def test_a_moved_mechanism_draws_the_noise_of_the_cpu(name: str, place: Place):
    made = seeded(name, 0)
    assert isinstance(made, TransitionMechanism)
    here = at_seed(lambda: made.noise((4, 3)))
    with place.entered() as device:
        there = at_seed(lambda: moved(made, device).noise((4, 3)))
        assert there.device.type == device.type
        close(here.detach(), there.detach().cpu(), place)


def test_samples_of_a_moved_network_are_those_of_the_cpu(place: Place):
    made = fitted_pair()
    at = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]], dtype=DOUBLE)

    def drawn(asked: ExogenousModel, actions: Tensor) -> list[Tensor]:
        posterior = NetworkModel(asked, members=4, draws=4).posterior(actions)
        return [at_seed(lambda: posterior.rsample(torch.Size([5]))), posterior.mean]

    with torch.no_grad():
        here = drawn(made, at)
        with place.entered() as device:
            other = deepcopy(made).to(device)
            for actions in (at, at.to(device)):
                for one, found in zip(here, drawn(other, actions), strict=True):
                    close(one, found.cpu(), place)


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "decoder"), [("mixture", "closed_form"), ("heteroskedastic", "gp")])
def test_a_moved_causal_model_is_queried_as_on_the_cpu(phi: str, decoder: str, place: Place):
    made, rows = fitted_pair(phi=phi, decoder=decoder), pair_table(9, 5)
    actions = torch.tensor([[0.4, 0.2], [1.5, -0.3]], dtype=DOUBLE)

    def found(asked: ExogenousModel) -> list[Tensor]:
        tables = [counterfactual(asked, rows, {"a": 0.3}), counterfactual(asked, rows, fixed={"X": 0.1})]
        assert all(isinstance(each, Table) for each in tables)
        return [
            recover(asked, rows),
            sample(asked, actions, 8, seed=2),
            sample(asked, actions, 8, fixed={"X": 0.5}),
            torch.tensor([each.value for each in asked.dependences().values()], dtype=DOUBLE),
            *(each.values for each in tables),
            *(each.altered.double() for each in tables),
        ]

    here = found(made)
    with place.entered() as device:
        for one, other in zip(here, found(deepcopy(made).to(device)), strict=True):
            close(one, other, place)


@pytest.mark.parametrize("surrogate", ["linear_structural", "structural_posterior", "outcome_regression"])
def test_draws_of_outcomes_of_a_moved_model_are_those_of_the_cpu(surrogate: str, place: Place):
    made, region = learnt_here(surrogate, WORLD.task, TABLE), WORLD.task.region
    with place.entered() as device:
        other = deepcopy(made).to(device)
        for names, action in ((("a",), ACTION), ((), ACTION[:0])):
            here = made.outcome_draws(names, GIVEN, action)
            there = other.outcome_draws(names, GIVEN, action)
            if here is None:
                assert there is None
                continue
            close(here.values, there.values, place, 10)
            close(here.basis, there.basis, place)
            assert there.share(region) == pytest.approx(here.share(region), abs=1e-3)
            assert there.bounds(region) == here.bounds(region)


def ensemble() -> TransitionEnsemble:
    return TransitionEnsemble(partial(model, effects="sparse"), 2)


@pytest.mark.slow
@pytest.mark.parametrize("make", [model, partial(model, effects="sparse"), ensemble])
def test_a_moved_model_of_transitions_is_queried_as_on_the_cpu(make: Callable[[], Any], place: Place):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = fit(make(), observations(20), Descent(max_epochs=2, batch_size=64, progress=False))
    rows, (episode,) = observations(5, seed=3), patients(1, 6, 8)

    def found(asked: Any) -> list[Tensor]:
        one = asked.each[0] if isinstance(asked, TransitionEnsemble) else asked
        return [
            asked.log_likelihood(rows).detach(),
            clinical_log_likelihood(asked, rows),
            torch.tensor(list(asked.lipschitz(rows).values())),
            recover(one, episode),
            sample(one, None, 3, observed=episode),
            sample(one, torch.zeros(2, 5, dtype=torch.long), 3, fixed={"x": 0.1}, observed=episode),
            counterfactual(asked, episode, {"action[1]": 4}).values,
            counterfactual(asked, episode, {"vaso": 0.5}, {"y": 0.2}).values,
        ]

    here = found(made)
    with place.entered() as device:
        for one, other in zip(here, found(deepcopy(made).to(device)), strict=True):
            # Weights in float32 are rounded otherwise on a GPU.
            close(one, other, place, 1 if place.kind == "second" else 100)


def test_a_moved_closed_form_claims_as_on_the_cpu(place: Place):
    made = fit(TransitionRidge(VARYING, STATIC, CONTEXTUAL, DOSES, 3), observations(20))
    rows, (episode,) = observations(5, seed=3), patients(1, 6, 8)

    def found(asked: TransitionRidge) -> list[Tensor]:
        wanted = CounterfactualReturn(asked, EpisodeCase(episode), LinearReward({"x": -1.0}), 2)
        actions = (wanted.observed + 4) % 9
        gains, trajectory = wanted.claimed(actions.unsqueeze(0)), wanted.trajectory
        assert gains is not None
        there = [
            asked.least_noise,
            gains,
            wanted.replay(actions.unsqueeze(0)),
            trajectory.branch(trajectory.states[:2], 3),
            trajectory.branch(trajectory.states[:2], 3, actions[:2]),
        ]
        return [asked.residuals(rows), *asked.noise(rows), *(each.cpu() for each in there)]

    here = found(made)
    with place.entered() as device:
        for one, other in zip(here, found(deepcopy(made).to(device)), strict=True):
            close(one, other, place)


QUICK = AcquisitionSearch(screened=32, starts=6, incumbents=2, steps=6)


@pytest.mark.bench
def test_a_moved_causal_model_keeps_levels_and_limits_as_on_the_cpu(place: Place):
    task = CausalTask.of(
        {
            "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
            "actions": {"a": [0.0, 2.0], "b": {"values": [-1.0, 0.0, 0.5, 1.0]}},
            "reward": "Y",
            "limits": {"normals": [[1.0, 1.0]], "offsets": [1.2]},
        }
    )
    rows = pair_table(16)
    made = fit(ExogenousModel(task, phi="heteroskedastic"), rows)
    case = RehearsalCase("0", {}, task.box.bounds(), levels=task.box.levels)

    def decided(asked: ExogenousModel) -> Decision:
        return QUICK(PosteriorMean(asked, case, draws=8))

    here = decided(made)
    with place.entered() as device:
        there = decided(deepcopy(made).to(device))
    same([here], [there], place)
    assert here.alteration is not None
    assert here.alteration.values[1] in (-1.0, 0.0, 0.5, 1.0)
