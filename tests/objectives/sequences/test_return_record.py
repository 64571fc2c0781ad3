"""Records against returns computed one by one."""

import pytest
import torch

from rehearsal_torch.objectives.sequences.return_record import return_record, taken
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from tests.toys.scored_episodes import scored_episode


@pytest.mark.parametrize("dosed", [False, True])
@pytest.mark.parametrize("use", ["mean", "worst"])
def test_rewards_of_the_steps_add_up_to_the_return(use, dosed):
    objective = scored_episode(2, members=3, dosed=dosed, use=use)
    decision = GreedyChanges()(objective)
    record = return_record(objective, decision)
    assert record == objective.trajectory_record(decision)
    assert sum(record["rewards"]) == pytest.approx(record["value"])
    assert sum(record["observed_rewards"]) == pytest.approx(record["observed"])
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
