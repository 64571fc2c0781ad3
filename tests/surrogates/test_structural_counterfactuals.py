"""Abduction, sampling and counterfactuals: rows of networks, and episodes as searches replay them."""

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.gradient_descent import Descent
from tests.toys.noisy_nodes import CHAIN, chain
from tests.toys.transitions import DEVIATION, EFFECT, NAMES, SLOPE, model, observations, patients


@pytest.fixture(scope="module")
def fitted() -> TransitionModel:
    return rt.fit(model(), observations(), Descent(max_epochs=3, progress=False))


@pytest.fixture
def episode() -> rt.Episode:
    return patients(1, 7, seed=5)[0]


def test_the_observed_actions_reproduce_the_episode(fitted, episode):
    trajectory = fitted.trajectory(episode)
    for same in (
        None,
        {},
        trajectory.observed[:-1],
        {f"action[{t}]": int(trajectory.observed[t]) for t in range(6)},
    ):
        found = rt.counterfactual(fitted, episode, same)
        assert found.names == episode.names
        assert found.identity == episode.identity
        assert torch.allclose(found.values, episode.values, rtol=0, atol=1e-6)
    assert torch.equal(found.values[0], episode.values[0])
    assert torch.equal(found.values[:, 2:], episode.values[:, 2:])


def test_other_actions_are_replayed_as_searches_replay_them(fitted, episode):
    trajectory = fitted.trajectory(episode)
    actions = (trajectory.observed[:-1] + torch.tensor([0, 1, 0, 4, 2, 0])) % trajectory.actions
    requested = fitted.units(replay(trajectory, actions.unsqueeze(0))[0])
    found = rt.counterfactual(fitted, episode, actions)
    assert torch.allclose(found.columns(fitted.varying), requested, atol=1e-12)
    changed = (actions != trajectory.observed[:-1]).nonzero()[:, 0].tolist()
    assert changed == [1, 3, 4]
    for step in range(6):
        doses = found.columns(fitted.levels.names)[step]
        kept = episode.columns(fitted.levels.names)[step]
        assert torch.equal(doses, fitted.doses(actions[step]) if step in changed else kept)
    # An alteration, as a decision has it.
    names = tuple(f"action[{step}]" for step in changed)
    alteration = rt.Alteration(names, actions[changed])
    assert torch.equal(rt.counterfactual(fitted, episode, alteration).values, found.values)
    assert torch.equal(found.columns(("age", "vent")), episode.columns(("age", "vent")))


def test_what_a_decision_claims_is_what_would_have_been(fitted, episode):
    decision = rt.look_back(fitted, episode, changes=2, reward={"x": -1.0})
    found = rt.counterfactual(fitted, episode, decision.alteration)
    assert -float(found.columns(["x"]).sum()) == pytest.approx(decision.estimate.point, abs=1e-6)
    assert -float(episode.columns(["x"]).sum()) == pytest.approx(decision.baseline.point, abs=1e-6)


def test_doses_are_named_in_their_unit(fitted, episode):
    vaso = torch.linspace(0, 2, 6, dtype=torch.float64)
    found = rt.counterfactual(fitted, episode, {"vaso": vaso, "fluid": 0.0})
    assert torch.equal(found.columns(["vaso"])[:-1, 0], vaso)
    assert float(found.columns(["fluid"])[:-1].abs().max()) == 0
    numbers = fitted.levels.digitise(torch.stack([vaso, torch.zeros_like(vaso)], -1))
    assert torch.allclose(
        found.columns(fitted.varying),
        rt.counterfactual(fitted, episode, numbers).columns(fitted.varying),
        atol=1e-12,
    )


def test_features_that_are_set_by_hand_stay_and_change_what_follows(fitted, episode):
    found = rt.counterfactual(fitted, episode, fixed={"x": 0.25})
    assert torch.allclose(found.columns(["x"])[1:], torch.tensor(0.25, dtype=torch.float64), atol=1e-12)
    assert torch.equal(found.values[0], episode.values[0])
    # The step into time 1 starts from the observed state.
    assert torch.allclose(found.columns(["y"])[1], episode.columns(["y"])[1], atol=1e-6)
    assert float((found.columns(["y"])[2:] - episode.columns(["y"])[2:]).abs().min()) > 1e-6


def test_recovered_noise_is_that_of_the_course_and_of_the_mechanism(fitted, episode):
    noise = rt.recover(fitted, episode)
    assert noise.shape == (6, 2)
    assert torch.allclose(noise, fitted.trajectory(episode).noise, atol=1e-8)
    single = fitted.mechanism.abduct(*fitted.examples(transitions([episode])))
    assert torch.allclose(noise, single.detach().double(), atol=1e-3)


def test_trajectories_start_at_the_episode_and_have_the_models_noise(fitted, episode):
    drawn = rt.sample(fitted, None, 400, observed=episode)
    assert drawn.shape == (400, 7, 2)
    assert torch.allclose(drawn[:, 0], episode.columns(fitted.varying)[0].expand(400, 2), atol=1e-9)
    # A drawn trajectory is an episode: its noise, recovered, follows the model's own distribution.
    values = episode.values.clone()
    recovered = []
    for each in drawn[:100]:
        values[:, :2] = each
        recovered.append(rt.recover(fitted, rt.Episode("drawn", NAMES, values.clone())))
    cholesky = fitted.mechanism.cholesky().detach().double()
    expected = (cholesky @ cholesky.mT).diagonal().sqrt()
    assert torch.allclose(torch.cat(recovered).std(0), expected, rtol=0.1)
    assert torch.allclose(torch.cat(recovered).mean(0), torch.zeros(2, dtype=torch.float64), atol=0.02)


def test_action_sequences_share_their_noise(fitted, episode):
    observed = fitted.trajectory(episode).observed[:-1]
    other = observed.clone()
    other[2] = (other[2] + 3) % 9
    drawn = rt.sample(fitted, torch.stack([observed, other]), 16, seed=4, observed=episode)
    assert drawn.shape == (2, 16, 7, 2)
    assert torch.allclose(drawn[0, :, :3], drawn[1, :, :3], atol=1e-12)
    assert float((drawn[0, :, 3] - drawn[1, :, 3]).abs().max()) > 1e-4
    assert torch.allclose(drawn[0], rt.sample(fitted, None, 16, seed=4, observed=episode), atol=1e-12)
    named = {"action[2]": int(other[2])}
    assert torch.allclose(drawn[1], rt.sample(fitted, named, 16, seed=4, observed=episode), atol=1e-12)
    assert not torch.equal(drawn[0], rt.sample(fitted, None, 16, seed=5, observed=episode))
    fixed = rt.sample(fitted, None, 16, seed=4, fixed={"y": 0.5}, observed=episode)
    assert torch.allclose(fixed[:, 1:, 1], torch.tensor(0.5, dtype=torch.float64), atol=1e-9)


@pytest.mark.slow
def test_a_counterfactual_of_a_well_fitted_model_is_that_of_the_truth():
    """s' = SLOPE s + EFFECT a + DEVIATION e, with the doses of the levels and the noise of the episode."""
    table = observations(count=300, horizon=8)
    made = rt.fit(model(hidden=16), table, Descent(max_epochs=150, learning_rate=1e-2, progress=False))
    (episode,) = patients(1, 8, seed=11)
    states, doses = episode.columns(("x", "y")), episode.columns(("vaso", "fluid"))
    noise = (states[1:] - states[:-1] @ SLOPE.T - doses[:-1] @ EFFECT.T) / DEVIATION
    found = rt.counterfactual(made, episode, {"vaso": 0.0})
    true = [states[0]]
    for time in range(7):
        given = torch.stack([torch.zeros((), dtype=torch.float64), doses[time, 1]])
        true.append(SLOPE @ true[-1] + EFFECT @ given + DEVIATION * noise[time])
    apart = (found.columns(("x", "y")) - torch.stack(true)).square().mean().sqrt()
    moved = (states - torch.stack(true)).square().mean().sqrt()
    assert float(apart) < 0.5 * float(moved)


def test_a_model_answers_as_its_network():
    made = rt.fit(ExogenousModel(CHAIN), chain(120, 0))
    network, table = made.network(), chain(20, 4)
    assert torch.equal(rt.recover(made, table), rt.recover(network, table))
    first, second = (rt.counterfactual(one, table, {"a": 0.4}, {"X": 1.0}) for one in (made, network))
    assert torch.equal(first.values, second.values)
    assert torch.equal(first.altered, second.altered)
    actions = torch.tensor([[0.5, 0.2], [1.5, -0.8]], dtype=torch.float64)
    with pytest.raises(ValueError, match="expected a CausalModel or a TransitionModel; got a CausalNetwork"):
        rt.sample(network, actions, 8)
    with pytest.raises(ValueError, match="expected a Table, as the model is a causal network"):
        rt.recover(made, patients(1, 4, seed=1)[0])
    with pytest.raises(ValueError, match="expected actions as name to value; got a Tensor"):
        rt.counterfactual(made, table, actions)


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ({"dose": 1.0}, r"\['dose'\] are not actions: .* action\[5\], or \['vaso', 'fluid'"),
        ({"action[6]": 1}, "expected a whole number for a time step 0 ... 5"),
        ({"action[1]": 1.5}, "expected a whole number"),
        ({"action[1]": 9}, "expected action numbers 0 ... 8; got . to 9"),
        ({"action[one]": 1}, r"an episode's alteration sets action\[0\]"),
        ({"vaso": [1.0, 2.0]}, r"vaso: expected a dose, or 6 of them, as finite numbers; got \(2,\)"),
        ({"vaso": float("nan")}, "vaso: expected a dose"),
        (torch.zeros(4, dtype=torch.long), r"expected action numbers \(..., 6\) long, .* got \(4,\)"),
        (torch.zeros(6), "expected action numbers"),
        (torch.zeros(2, 6, dtype=torch.long), r"expected one sequence of actions, \(T - 1,\)"),
    ],
)
def test_strange_actions_are_refused(fitted, episode, actions, words):
    with pytest.raises(ValueError, match=words):
        rt.counterfactual(fitted, episode, actions)


def test_strange_models_and_observations_are_refused(fitted, episode):
    with pytest.raises(ValueError, match=r"\['age'\] are not varying features of this model"):
        rt.counterfactual(fitted, episode, fixed={"age": 3.0})
    with pytest.raises(ValueError, match="to be an Episode, as the model is a transition model; got a Table"):
        rt.recover(fitted, observations())
    with pytest.raises(ValueError, match=r"to be an Episode, .* got a NoneType"):
        rt.sample(fitted, None, 3)
    with pytest.raises(ValueError, match="has not been fitted yet"):
        rt.recover(model(), episode)
    with pytest.raises(ValueError, match="expected a causal model or a TransitionModel; got a Linear"):
        rt.counterfactual(torch.nn.Linear(1, 1), chain(3, 0))
