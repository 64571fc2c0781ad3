"""Records against returns computed one by one."""

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.sequences.return_record import given_doses, return_record, taken
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.spaces.box import Alteration
from tests.toys.episodes import idle_dose_episode, transition_episode
from tests.toys.scored_episodes import scored_episode


@pytest.mark.parametrize("dosed", [False, True])
@pytest.mark.parametrize("use", ["mean", "worst"])
def test_rewards_of_the_steps_add_up_to_the_return(use, dosed):
    objective = scored_episode(2, members=3, dosed=dosed, use=use)
    decision = GreedyChanges()(objective)
    record = return_record(objective, decision)
    assert record == return_record(objective, decision)
    assert sum(record["rewards"]) == pytest.approx(record["value"])
    assert sum(record["observed_rewards"]) == pytest.approx(record["observed"])
    gain = record["value"] - record["observed"]
    assert record["improvement"] == pytest.approx(gain / abs(record["observed"]))
    gains = record["member_gains"]
    gain = min(gains) if use == "worst" else sum(gains) / len(gains)
    assert record["value"] - record["observed"] == pytest.approx(gain)
    if dosed:
        same = record["related"]["with doses"]
        assert same == pytest.approx({"value": record["value"], "observed": record["observed"]})


def test_rewards_that_do_not_depend_on_the_action_are_those_of_the_state():
    rewards = torch.arange(6.0).view(2, 3)
    assert taken(rewards, torch.tensor([2, 0])).tolist() == [2, 3]
    assert taken(rewards[:, :1], torch.tensor([2, 0])).tolist() == [0, 3]
    assert taken(rewards[:, :2], torch.tensor([1, 0])).tolist() == [1, 3]


def test_doses_are_those_that_were_given_unless_their_level_changes():
    objective = transition_episode(4, horizon=4, drugs=2, levels=3)
    given, levels = objective.case.episode.columns(["drug0", "drug1"]), objective.surrogate.levels
    action = int(objective.observed[1])
    other = next(
        each
        for each in objective.candidate_actions(1).tolist()
        if each // 3 != action // 3 and each % 3 == action % 3
    )
    record = return_record(objective, Decision(Alteration(("action[1]",), torch.tensor([other])), 0.0))
    expected = given[:3].clone()
    expected[1, 0] = levels.doses(torch.tensor(other))[0]
    assert record["observed_doses"] == given[:3].tolist()
    assert record["doses"] == expected.tolist()
    assert record["level_doses"] == levels.doses(objective.observed).tolist()
    assert record["level_doses"] != record["observed_doses"]


def test_an_episode_without_dose_columns_has_the_doses_of_the_levels():
    objective = idle_dose_episode()
    assert given_doses(objective).tolist() == [[0, 1], [1, 2], [0, 2], [1, 1]]


@pytest.mark.parametrize("dosed", [False, True])
def test_there_is_a_row_of_doses_for_each_action_that_may_change(dosed):
    objective = scored_episode(2, members=1, dosed=dosed)
    assert objective.reward.acts is dosed
    assert len(given_doses(objective)) == len(objective.observed) == (5 if dosed else 4)


def test_where_nothing_changes_the_return_is_the_observed_one():
    objective = scored_episode(2, members=1)
    record = return_record(objective, Decision(None, objective.outcome()))
    assert record["actions"] == record["observed_actions"] == objective.observed.tolist()
    assert record["value"] == record["observed"] == objective.outcome()
    assert record["improvement"] == 0.0
    assert record["rewards"] == record["observed_rewards"]
    assert (record["horizon"], record["changes"]) == (5, 2)
    assert not {"member_gains", "rewards_lower", "rewards_upper", "related"} & set(record)


def test_the_range_of_the_members_holds_their_rewards():
    objective = scored_episode(2, members=3)
    decision = GreedyChanges()(objective)
    record, sequence = return_record(objective, decision), objective.sequence(decision)
    states = objective.replay(sequence.unsqueeze(0))[0]
    every = objective.by_member(states, sequence)
    assert record["rewards_lower"] == every.min(0).values.tolist()
    assert record["rewards_upper"] == every.max(0).values.tolist()
    assert record["rewards"] == pytest.approx(every.mean(0).tolist())
    gains = every.sum(-1) - objective.member_returns(objective.observed)
    assert record["member_gains"] == pytest.approx(gains.tolist())
