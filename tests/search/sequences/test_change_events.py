"""Change events against replays of whole action sequences."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.search.sequences.change_events import change_events, roll_out
from rehearsal_torch.search.sequences.decision_process import Effort
from tests.toys.curved_episodes import curved_episode
from tests.toys.episodes import transition_episode


def events_of(objective, times=None, choices=None, effort=None):
    trajectory = objective.trajectory
    gradient = objective.reward.gradient(objective.surrogate.names, objective.surrogate.state_scale())
    times = objective.open.tolist() if times is None else times
    found = change_events(
        trajectory, gradient, trajectory.states, objective.observed, times, effort or Effort(), choices
    )
    return gradient, found


def changed(objective, events, places):
    sequence = objective.observed.clone()
    sequence[events.times[places]] = events.actions[places]
    return sequence


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    horizon=st.integers(2, 7),
    width=st.integers(1, 3),
    actions=st.integers(2, 4),
    learnt=st.booleans(),
)
def test_every_single_change_is_an_event_with_the_effect_that_a_replay_shows(
    seed, horizon, width, actions, learnt
):
    make = transition_episode if learnt else curved_episode
    objective = make(seed, horizon, 2, width, actions)
    _, events = events_of(objective)
    every = {
        (time, action)
        for time in range(horizon - 1)
        for action in range(objective.actions)
        if action != int(objective.observed[time])
    }
    assert len(events.times) == len(every)
    assert set(zip(events.times.tolist(), events.actions.tolist(), strict=True)) == every
    assert events.times.tolist() == sorted(events.times.tolist())
    sequences = torch.stack([changed(objective, events, [place]) for place in range(len(every))])
    torch.testing.assert_close(
        events.path + events.effects, replay(objective.trajectory, sequences), atol=1e-9, rtol=1e-9
    )
    gains = objective(sequences) - objective.outcome()
    torch.testing.assert_close(events.gains, gains, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(events.norms, events.effects.square().sum(-1).sqrt())


@pytest.mark.parametrize("seed", range(5))
def test_steps_that_are_fixed_and_actions_that_may_not_be_chosen_have_no_event(seed):
    objective = transition_episode(seed, 6, 2, 3, 4, fixed=(2,))
    _, events = events_of(objective)
    assert 2 not in events.times.tolist()
    assert len(events.times) == 4 * 3
    choices = torch.ones(5, 4, dtype=torch.bool)
    choices[:, 1] = choices[3] = False
    _, fewer = events_of(objective, choices=choices)
    kept = [
        place
        for place, (time, action) in enumerate(
            zip(events.times.tolist(), events.actions.tolist(), strict=True)
        )
        if time != 3 and action != 1
    ]
    for name in ("times", "actions", "effects", "gains"):
        torch.testing.assert_close(getattr(fewer, name), getattr(events, name)[kept], atol=1e-12, rtol=0)


def test_each_further_step_costs_one_evaluation_for_each_event_so_far():
    effort = Effort()
    events_of(transition_episode(0, 6, 2, 2, 3), effort=effort)
    assert effort.network_evaluations == 2 * (1 + 2 + 3 + 4 + 5)


def test_without_a_step_to_change_there_is_no_event():
    objective, effort = curved_episode(0, 5), Effort()
    _, events = events_of(objective, times=[], effort=effort)
    assert events.effects.shape == (0, 5, 2)
    assert events.gains.shape == events.times.shape == events.actions.shape == (0,)
    assert events.first == 4
    assert effort.network_evaluations == 0


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), count=st.integers(0, 6), open_=st.sets(st.integers(0, 4), min_size=1))
def test_no_set_of_events_displaces_a_state_by_more_than_the_reach(seed, count, open_):
    _, events = events_of(curved_episode(seed, 6, actions=3), times=sorted(open_))
    for time in range(6):
        largest = [0.0] * (count + 1)
        for size in range(1, min(count, len(open_)) + 1):
            for places in combinations(range(len(events.times)), size):
                if len({int(events.times[place]) for place in places}) == size:
                    largest[size] = max(largest[size], float(events.norms[list(places), time].sum()))
        for size in range(1, count + 1):
            largest[size] = max(largest[size], largest[size - 1])
        assert events.reach(time, count).tolist() == pytest.approx(largest, abs=1e-12)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), open_=st.sets(st.integers(0, 5), min_size=1), share=st.integers(1, 4))
def test_a_span_holds_the_events_of_its_step_also_among_some_of_the_events(seed, open_, share):
    _, events = events_of(curved_episode(seed, 7), times=sorted(open_))
    some = events.only(torch.arange(0, len(events.times), share))
    assert torch.equal(some.gains, events.gains[::share])
    assert torch.equal(some.effects, events.effects[::share])
    for each in (events, some):
        assert each.first == min(each.times.tolist())
        for time in range(6):
            start, stop = each.span(time)
            inside = [place for place, when in enumerate(each.times.tolist()) if when == time]
            assert list(range(start, stop)) == inside
            assert all(when < time for when in each.times[:start].tolist())


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    horizon=st.integers(3, 7),
    changes=st.integers(1, 4),
    learnt=st.booleans(),
)
def test_sets_of_events_gain_what_a_replay_of_their_sequence_gains(seed, horizon, changes, learnt):
    make = transition_episode if learnt else curved_episode
    objective = make(seed, horizon, changes, 2, 3)
    gradient, events = events_of(objective)
    stream = torch.Generator().manual_seed(seed)
    sets = torch.full((12, changes), -1)
    for row in sets:
        size = int(torch.randint(1, min(changes, horizon - 1) + 1, (), generator=stream))
        times = torch.randperm(horizon - 1, generator=stream)[:size].sort().values.tolist()
        for column, time in enumerate(times):
            start, stop = events.span(time)
            row[column] = torch.randint(start, stop, (), generator=stream)
    effort = Effort()
    gains, sequences = roll_out(objective.trajectory, gradient, events, sets, effort)
    for row, sequence in zip(sets, sequences, strict=True):
        assert torch.equal(sequence, changed(objective, events, row[row >= 0]))
    torch.testing.assert_close(gains, objective(sequences) - objective.outcome(), atol=1e-9, rtol=1e-9)
    steps = horizon - 1 - events.times[sets[:, 0]]
    assert effort.network_evaluations == int(steps.sum()), "nothing is evaluated before the first change"
