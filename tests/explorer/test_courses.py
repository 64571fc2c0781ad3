"""Courses in the words of the run, and where a replay lies outside the data."""

import pytest

from rehearsal_torch.explorer.courses import beyond, course, signed
from rehearsal_torch.reporting.style import Wording
from tests.toys.episodes import transition_episode
from tests.toys.scored_episodes import weighed_episode

COST = Wording("cost", -1.0)


@pytest.fixture
def one():
    """An episode with a single model."""
    return transition_episode(3, horizon=5, changes=2)


def test_rewards_are_told_as_the_variable_that_they_are_minus():
    assert signed([1.0, -2.0, 0.0], COST) == [-1.0, 2.0, 0.0]
    assert str(signed(0.0, COST)) == "0.0", "not minus zero"
    assert signed(3.0, Wording()) == 3.0
    assert signed(None, COST) is None


def test_a_single_model_has_no_band(one):
    sequence = one.observed.clone()
    sequence[1] = one.candidate_actions(1)[0]
    record = {"rewards": [1.0] * 5, "observed_rewards": [2.0] * 5}
    found = course(one, sequence, record, COST, True)
    assert found["rewards"]["after"] == [-1.0] * 5
    assert found["rewards"]["lower"] is found["states"][0]["lower"] is None
    states = one.surrogate.units(one.replay(sequence.unsqueeze(0))[0])
    assert found["states"][1]["after"] == states[:, 1].tolist()
    assert found["states"][1]["observed"] == one.case.episode.columns(["x1"])[:, 0].tolist()


def test_without_changes_or_leave_nothing_is_replayed(one):
    record = {"rewards": [1.0] * 5, "observed_rewards": [1.0] * 5}
    assert course(one, one.observed, record, COST, True)["rewards"]["after"] is None
    sequence = one.observed.clone()
    sequence[1] = one.candidate_actions(1)[0]
    assert course(one, sequence, record, COST, False)["states"][0]["after"] is None


def test_the_band_is_that_of_the_models():
    several = weighed_episode(2, members=3, use="mean")
    sequence = several.observed.clone()
    sequence[0] = several.candidate_actions(0)[0]
    bounds = {"rewards_lower": [0.0] * 5, "rewards_upper": [3.0] * 5}
    record = {"rewards": [1.0] * 5, "observed_rewards": [2.0] * 5, **bounds}
    found = course(several, sequence, record, COST, True)
    assert (found["rewards"]["lower"], found["rewards"]["upper"]) == ([-3.0] * 5, [0.0] * 5)
    states = several.surrogate.member_units(several.replay(sequence.unsqueeze(0))[0])
    assert found["states"][0]["upper"] == states[..., 0].amax(1).tolist()


def test_a_replay_beyond_the_observations_is_named(one):
    sequence = one.observed.clone()
    sequence[1] = one.candidate_actions(1)[0]
    states = one.surrogate.units(one.replay(sequence.unsqueeze(0))[0])
    rescale = one.surrogate.rescale
    observed = one.case.episode.columns(["x0"])
    rescale.lower[0] = min(float(observed.min()), float(states[:, 0].min())) - 1.0
    rescale.upper[0] = max(float(observed.max()), float(states[:, 0].max())) + 1.0
    said = [text for text in beyond(one, sequence) if "x0" in text]
    assert said == []
    rescale.upper[0] = float(observed.max()) - 0.1
    said = [text for text in beyond(one, one.observed) if "x0" in text]
    assert said[0].startswith("x0 lies between")


def rising(one):
    """A sequence under which x0 rises above what was observed, and its states."""
    observed = one.case.episode.columns(["x0"])
    for step in one.open.tolist():
        for action in one.candidate_actions(step):
            sequence = one.observed.clone()
            sequence[step] = action
            states = one.surrogate.units(one.replay(sequence.unsqueeze(0))[0])[:, 0]
            if float(states.max()) > float(observed.max()):
                return sequence, states
    raise AssertionError("x0 rises under no single change")


@pytest.mark.parametrize(("beside", "said"), [(0.04, False), (0.06, True)])
def test_a_predicted_state_may_lie_a_twentieth_of_the_range_beyond(one, beside, said):
    sequence, states = rising(one)
    rescale = one.surrogate.rescale
    low = min(float(states.min()), float(one.case.episode.columns(["x0"]).min())) - 1.0
    # The trajectory was computed in the coordinates of the range before.
    replayed = one.replay(sequence.unsqueeze(0))
    one.replay = lambda sequences: replayed
    width = (float(states.max()) - low) / (1 + beside)
    units = one.surrogate.units(replayed[0])
    rescale.lower[0], rescale.upper[0] = low, low + width
    one.surrogate.units = lambda _: units
    found = [text for text in beyond(one, sequence) if text.startswith("under these actions x0")]
    assert bool(found) is said
