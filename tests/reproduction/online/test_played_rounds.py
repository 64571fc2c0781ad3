"""The rounds that are kept of an agent, and their true probabilities."""

import pytest

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.world_size import SampleSize

pytest.importorskip("gymnasium", reason="Gymnasium is an option: pip install 'rehearsal-torch[rl]'")

from rehearsal_torch.adapters.gymnasium import RehearsalEnvironment
from reproduction.online.played_rounds import RecordedEnvironment, truths


def recorded(world, rounds):
    environment = RecordedEnvironment(RehearsalEnvironment(world, scored=False), rounds)
    environment.action_space.seed(0)
    return environment


@pytest.mark.parametrize(
    "world",
    [
        RideHailing(size=SampleSize(rows=10, contexts=12)),
        Bermuda("qwz23", size=SampleSize(rows=10, contexts=12)),
        RideHailing(True, size=SampleSize(rows=10, contexts=12)),
    ],
)
def test_all_at_once_the_world_says_what_it_says_one_by_one(world):
    environment = recorded(world, 12)
    for _ in range(12):
        environment.reset()
        environment.step(environment.action_space.sample())
    found = truths(world, environment.played)
    assert len({each.alteration.names for each in environment.played}) > 1
    for each, true in zip(environment.played, found, strict=True):
        score = world.score(world.case(each.round), Decision(each.alteration, 0.0))
        assert true.probability == pytest.approx(score["probability"], abs=1e-9)
        assert true.oracle == pytest.approx(score["oracle"], abs=1e-9)
    assert truths(world, []) == []


def test_the_first_rounds_are_kept_with_what_the_agent_saw():
    environment = recorded(RideHailing(size=SampleSize(rows=10, contexts=5)), 5)
    rewards = []
    for _ in range(8):
        environment.reset()
        rewards.append(environment.step(environment.action_space.sample())[1])
    assert [each.round for each in environment.played] == [0, 1, 2, 3, 4]
    assert [each.success for each in environment.played] == [reward > 0 for reward in rewards[:5]]
    assert all(each.seconds >= 0 for each in environment.played)


def test_what_the_agent_does_between_rounds_counts_and_the_world_does_not():
    ticks = iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproduction.online.played_rounds.time.process_time", lambda: next(ticks))
        environment = recorded(RideHailing(size=SampleSize(rows=10, contexts=2)), 2)
        for _ in range(2):
            environment.reset()
            environment.step(environment.action_space.sample())
    # The clock is read when the environment is entered and left: one tick for the agent before each reset and
    # before each step.
    assert [each.seconds for each in environment.played] == [2, 2]
