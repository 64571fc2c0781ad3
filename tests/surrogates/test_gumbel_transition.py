"""Counted transitions with Gumbel noise: what happened is replayed, and other actions have their chances."""

import pytest
import torch

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.problems.sequences.icu_sepsis import IcuSepsis
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.surrogates.gumbel_transition import GumbelTransition
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.icu_states import LIVE, written


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return IcuSepsis(written(tmp_path_factory.mktemp("icu")), count=1500, changes=1)


def model(world, count=60):
    return fit(GumbelTransition(LIVE + 2, count), world.observations())


def test_what_happened_is_replayed_by_every_member(world):
    fitted = model(world)
    for index in range(20):
        episode = world.case(index).episode
        trajectory = fitted.trajectory(episode)
        states = trajectory.states[:-1]
        assert trajectory.states.shape == (episode.horizon, 60)
        for time in range(episode.horizon - 1):
            ahead = trajectory.step(states[time : time + 1], time, trajectory.observed[time : time + 1])
            assert torch.equal(ahead[0], trajectory.states[time + 1])
        again = replay(trajectory, trajectory.observed[None])[0]
        assert torch.equal(fitted.units(again), episode.columns(["SOFA"]))
        assert torch.equal(fitted.doses(trajectory.observed), episode.columns(fitted.dose_names))


def test_other_actions_have_the_chances_of_the_counts(world):
    """Averaged over observed next states, a counterfactual step is as likely as a fresh one."""
    fitted = model(world, 400)
    probabilities = torch.from_numpy(world.logits).exp()
    rows = [(each, step) for each in world.episodes()[:400] for step in (0,) if each.horizon > 4]
    for action in (3, 11):
        claimed = torch.zeros(LIVE + 2, dtype=torch.float64)
        expected = torch.zeros(LIVE + 2, dtype=torch.float64)
        for episode, step in rows[:150]:
            trajectory = fitted.trajectory(episode)
            ahead = trajectory.branch(trajectory.states[step : step + 1], step, torch.tensor([action]))
            claimed += torch.bincount(ahead[0, 0].long(), minlength=LIVE + 2) / 400
            expected += probabilities[int(trajectory.states[step, 0]), action]
        # Those who stay for four steps have seldom died in the first, whatever is done.
        assert float((claimed - expected).abs().max()) / 150 < 0.12


def test_claims_of_changes_that_nobody_chose_are_true_on_average(world):
    fitted, claims = model(world), []
    for index in range(world.count()):
        case = world.case(index)
        objective = CounterfactualReturn(fitted, case, LinearReward(), 1, agreement="none")
        actions = objective.trajectory.observed.clone()
        actions[0] = 7
        true = -float(world.points[world.followed(case.episode, actions)].sum())
        claims.append(
            (float(objective(actions[None, :-1])) - objective.outcome(), true - objective.outcome())
        )
    claimed, true = torch.tensor(claims).T
    error = float((true - claimed).std()) / len(claims) ** 0.5
    assert abs(float((true - claimed).mean())) < 3 * error
    assert float(torch.corrcoef(torch.stack((claimed, true)))[0, 1]) > 0.15


def test_enumeration_finds_at_least_what_single_changes_bring(world):
    fitted, case = model(world, 20), world.case(3)
    objective = CounterfactualReturn(fitted, case, LinearReward(), 1, agreement="none")
    decision = Exhaustive()(objective)
    for step in range(case.episode.horizon - 1):
        tried = objective.observed.repeat(25, 1)
        tried[:, step] = torch.arange(25)
        assert float(objective(tried).max()) <= decision.value + 1e-9


def test_states_beyond_those_counted_are_refused_and_unseen_ones_are_kept(world):
    with pytest.raises(ValueError, match="state: expected numbers of 3 states"):
        fit(GumbelTransition(3, 2), world.observations())
    fitted = fit(GumbelTransition(LIVE + 4, 50), world.observations())
    values = torch.tensor([[LIVE + 3, 24.0, 1, 1], [LIVE + 3, 24.0, 1, 1], [2, 5.0, 0, 0]]).double()
    trajectory = fitted.trajectory(Episode("new", ("state", "SOFA", "fluid", "vasopressor"), values))
    assert bool((trajectory.branch(trajectory.states[:1], 0) == LIVE + 3).all())
