"""A model whose noise holds its errors recommends nothing, and says why."""

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.episode_reward import EpisodeReward
from rehearsal_torch.objectives.guard import guarded_sequence
from rehearsal_torch.objectives.reward import LinearReward, Reward
from rehearsal_torch.objectives.sequences.model_error import model_error, unknown_noise
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from tests.toys.episodes import equation_episode, transition_episode


def episode(*shares: float, reward: Reward | None = None) -> CounterfactualReturn:
    found = transition_episode(3, horizon=5, changes=2)
    found.surrogate.noise_check.shares = torch.tensor(shares, dtype=torch.float64)
    return CounterfactualReturn(found.surrogate, found.case, reward or found.reward, 2)


def test_states_of_the_reward_are_judged_and_others_are_not():
    assert model_error(episode()) == model_error(episode(0.1, 0.9)) == ""
    both = LinearReward({"x1": 1.0, "x0": -1.0})
    told = model_error(episode(0.48, 0.101, reward=both))
    assert "(R2: x1 0.1, x0 0.48; at most 0.1 is noise)" in told


def test_a_reward_of_costs_alone_reads_no_state_and_none_is_judged():
    costs = EpisodeReward((), {"drug0": 1.0})
    assert model_error(episode(0.9, 0.9, reward=costs)) == unknown_noise(episode(reward=costs)) == ""


def test_a_recommendation_says_where_the_noise_was_never_checked():
    unknown, known = episode(), episode(0.05, 0.0)
    found = Exhaustive()(known)
    (kept,) = unknown.guarded([found])
    assert kept.status == "recommended"
    (told,) = (text for text in kept.warnings if text.startswith("noise: "))
    assert "it is not known" in told
    assert "fewer than 100 steps" in told
    assert not any(text.startswith("noise: ") for text in known.guarded([found])[0].warnings)
    assert unknown_noise(equation_episode(0)) == ""  # the truth is no model of rows


@pytest.mark.parametrize("declines", [True, False])
def test_a_model_with_errors_recommends_nothing_and_says_why(declines):
    good, bad = episode(0.05, 0.0), episode(0.48, 0.0)
    found = Exhaustive()(good)
    assert found.alteration is not None
    (kept,) = good.guarded([found], declines)
    assert kept.status == "recommended"
    (kept,) = bad.guarded([found], declines)
    assert kept.status == ("refused" if declines else "recommended")
    assert kept.trace.get("cause") == ("model" if declines else None)
    told = kept.reason if declines else kept.warnings[-1]
    assert told.startswith("the model has errors where its answers come from")
    assert "x0 0.48" in told
    assert "trainer.max_epochs" in told
    agreed = CounterfactualReturn(bad.surrogate, bad.case, bad.reward, 2, agreement="none")
    assert agreed.guarded([found], declines)[0].status == "recommended"
    nothing = Decision(None, bad.outcome(), status="no_action")
    assert guarded_sequence(bad, nothing) is nothing
