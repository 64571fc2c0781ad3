import pytest

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.verbs.one_episode import OneEpisode
from tests.toys.transitions import NAMES, patients


def test_one_episode_is_one_situation_without_a_score():
    (episode,) = patients(1, 6, seed=5)
    problem = OneEpisode(EpisodeCase(episode))
    assert problem.count() == 1
    assert problem.kind == "look_back"
    assert problem.case(0).episode is episode
    assert len(problem.held_out()) == 5
    assert problem.question().names == NAMES
    assert problem.score(problem.case(0), Decision(None, 0.0, status="no_action")) == {}
    assert problem.card() == {"episode": "0", "columns": list(NAMES), "time_steps": 6}
    with pytest.raises(IndexError, match="expected index 0, the only episode; got 1"):
        problem.case(1)


def test_its_observations_are_the_records_and_never_the_episode_itself():
    one, *others = patients(4, 6, seed=5)
    records = transitions(others)
    assert OneEpisode(EpisodeCase(one), records).observations() is records
    alone = OneEpisode(EpisodeCase(one)).observations()
    assert len(alone) == 0
    assert alone.names == records.names
