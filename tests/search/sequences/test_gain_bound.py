import math
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.mechanism import CurvedTrajectory, replay
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.decision_process import Effort
from rehearsal_torch.search.sequences.gain_bound import ChangeEvents, change_events, gain_bound, roll_out
from tests.toys.curved_episodes import curved_episode
from tests.toys.episodes import transition_episode


def events_of(objective: CounterfactualReturn) -> tuple[CurvedTrajectory, torch.Tensor, ChangeEvents]:
    trajectory = objective.trajectory
    assert isinstance(trajectory, CurvedTrajectory)
    gradient = objective.reward.gradient(objective.surrogate.names, objective.surrogate.state_scale())
    return (
        trajectory,
        gradient,
        change_events(
            trajectory, gradient, trajectory.states, objective.observed, objective.open.tolist(), Effort()
        ),
    )


def random_sets(
    events: ChangeEvents, changes: int, generator: torch.Generator, count: int = 40
) -> torch.Tensor:
    sets = torch.full((count, changes), -1)
    for row in sets:
        size = int(torch.randint(1, changes + 1, (), generator=generator))
        open_ = events.times.unique()
        times = open_[torch.randperm(len(open_), generator=generator)[:size]].sort().values
        for place, time in enumerate(times.tolist()):
            candidates = (events.times == time).nonzero()[:, 0]
            row[place] = candidates[int(torch.randint(len(candidates), (), generator=generator))]
    return sets


def exact_gains(objective: CounterfactualReturn, events: ChangeEvents, sets: torch.Tensor) -> torch.Tensor:
    sequences = objective.observed.repeat(len(sets), 1)
    for row, places in zip(sequences, sets, strict=True):
        places = places[places >= 0]
        row[events.times[places]] = events.actions[places]
    return objective(sequences) - objective.outcome()


def bounds_of(bound, sets: torch.Tensor) -> torch.Tensor:
    totals = []
    for places in sets:
        places = places[places >= 0]
        totals.append(bound.gains[places].sum() + torch.triu(bound.pairs[places][:, places], 1).sum())
    return torch.stack(totals)


instances = given(
    seed=st.integers(0, 10_000),
    horizon=st.integers(3, 9),
    changes=st.integers(2, 5),
    width=st.integers(1, 4),
    levels=st.integers(2, 4),
    learnt=st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@instances
def test_the_bound_holds_around_a_changed_path_and_for_some_events(
    seed, horizon, changes, width, levels, learnt
):
    objective = (
        transition_episode(seed, horizon, changes, width, levels)
        if learnt
        else curved_episode(seed, horizon, changes, width, levels)
    )
    trajectory, gradient, events = events_of(objective)
    place = int(torch.randint(len(events.times), (), generator=torch.Generator().manual_seed(seed)))
    later = [time for time in range(horizon - 1) if time > events.times[place]]
    if len(later) < 2:
        return
    kept = events.kept.clone()
    kept[events.times[place]] = events.actions[place]
    path = events.path + events.effects[place]
    torch.testing.assert_close(path, replay(trajectory, kept.unsqueeze(0))[0])
    around = change_events(trajectory, gradient, path, kept, later, Effort())
    around = around.only(torch.arange(0, len(around.times), 2))
    changes = min(changes, len(around.times.unique()))
    bound = gain_bound(trajectory, gradient, around, changes)
    sets = random_sets(around, changes, torch.Generator().manual_seed(seed), 20)
    gains, sequences = roll_out(trajectory, gradient, around, sets, Effort())
    torch.testing.assert_close(gains, objective(sequences) - objective(kept), atol=1e-9, rtol=1e-9)
    assert (bounds_of(bound, sets) - gains).min() > -1e-9


def test_the_rest_is_of_third_order():
    """Actions with effects ten times smaller leave a rest at least two hundred times smaller."""
    rests = []
    for spread in (0.3, 0.03):
        trajectory, gradient, events = events_of(transition_episode(4, 7, 3, 3, 4, spread=spread))
        rests.append(float(gain_bound(trajectory, gradient, events, 3).rest.max()))
    assert rests[1] < rests[0] / 200


SIZES = [(1, 5, 2, 2, 3), (2, 6, 3, 3, 3), (3, 7, 4, 2, 3), (4, 8, 5, 3, 2)]


@pytest.mark.parametrize("spread", [1.0, 0.03])
@pytest.mark.parametrize(("seed", "horizon", "changes", "width", "levels"), SIZES)
def test_some_sets_gain_no_more_than_their_bound_and_no_less_than_it_allows(
    seed, horizon, changes, width, levels, spread
):
    objective = transition_episode(seed, horizon, changes, width, levels, spread=spread)
    trajectory, gradient, events = events_of(objective)
    bound = gain_bound(trajectory, gradient, events, changes)
    assert bound.finite
    assert bound.changes == changes
    sets = random_sets(events, changes, torch.Generator().manual_seed(seed))
    slack = bounds_of(bound, sets) - exact_gains(objective, events, sets)
    rest = torch.stack([bound.rest[row[row >= 0]][:, row[row >= 0]].sum() for row in sets])
    assert slack.min() > -1e-12
    assert (slack - 2 * rest).max() < 1e-12
    same = events.times.unsqueeze(0) == events.times.unsqueeze(1)
    assert torch.equal(bound.pairs, bound.pairs.mT)
    assert torch.equal(bound.pairs == -torch.inf, same)
    assert torch.equal(bound.rest, bound.rest.triu(1))


def test_affine_maps_add_up():
    objective = curved_episode(5, 6, 3, 3, 3, bent=0.0)
    trajectory, gradient, events = events_of(objective)
    bound = gain_bound(trajectory, gradient, events, 3)
    assert bound.rest.max() < 1e-12
    sets = random_sets(events, 3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        bounds_of(bound, sets), exact_gains(objective, events, sets), atol=1e-9, rtol=0
    )


def test_some_of_the_events_have_the_numbers_that_they_had():
    trajectory, gradient, events = events_of(transition_episode(2, 5, 2))
    whole = gain_bound(trajectory, gradient, events, 2)
    places = torch.tensor([0, 3, 4])
    some = whole.only(places)
    assert torch.equal(some.gains, events.gains[places])
    assert some.changes == 2
    for row, one in enumerate(places.tolist()):
        for column, other in enumerate(places.tolist()):
            assert float(some.pairs[row, column]) == float(whole.pairs[one, other])
            assert float(some.rest[row, column]) == float(whole.rest[one, other])
    assert not replace(whole, rest=torch.full_like(whole.rest, torch.inf)).finite
    assert not replace(whole, gains=torch.full_like(whole.gains, torch.nan)).finite


def scalar_bound(objective, changes):
    """W and its third-order part by the equations of the module for maps of one state, F = s x + b sin(i x) +
    ...: plain numbers, pair by pair."""
    _, gradient, events = events_of(objective)
    model, kept = objective.surrogate, objective.observed.tolist()
    states, inner = events.path[:, 0].tolist(), model.inner[:, 0, 0].tolist()
    first, second, third = objective.trajectory.constants[0].tolist()
    times, actions = events.times.tolist(), events.actions.tolist()
    effects, last = events.effects[..., 0].tolist(), len(states) - 1
    count = range(len(times))

    def slope(time, action):
        return float(model.shared) + model.bent * inner[action] * math.cos(inner[action] * states[time])

    def bend(time, action):
        return -model.bent * inner[action] ** 2 * math.sin(inner[action] * states[time])

    def reach(time, number):
        each = {when: [abs(effects[e][time]) for e in count if times[e] == when] for when in times}
        return sum(sorted((max(sizes) for sizes in each.values()), reverse=True)[:number])

    adjoint = [float(gradient)] * (last + 1)
    for time in range(last - 1, -1, -1):
        adjoint[time] += adjoint[time + 1] * slope(time, kept[time])
    known, later = max(0, changes - 2), {}
    pairs, rest, eta = (dict.fromkeys(combinations(count, 2), 0.0) for _ in range(3))
    epsilon, excess = 0.0, 1.0
    for time in range(last):
        whole, before = reach(time, changes), reach(time, changes - 1)
        radius, weight, lipschitz = whole + epsilon, adjoint[time + 1], abs(adjoint[time + 1]) * third
        others = [f for f in count if times[f] == time]
        norms = {
            action: min(abs(slope(time, action)) + second * radius, first)
            for action in (kept[time], *(actions[f] for f in others))
        }
        largest = max(norms.values())
        norm = max(norms[kept[time]], 0.9 * largest)
        bent = {f: abs(weight * (bend(time, actions[f]) - bend(time, kept[time]))) for f in others}
        turned = {f: slope(time, actions[f]) - slope(time, kept[time]) for f in others}
        factor = max(
            (abs(weight * turned[f]) + bent[f] * radius + 2 * lipschitz / 6 * radius**2 for f in others),
            default=0.0,
        )
        for e, f in pairs:
            one, other = effects[e][time], effects[f][time]
            if times[f] < time:
                known_eta = eta[e, f] * excess**known
                pairs[e, f] += one * other * weight * bend(time, kept[time])
                share = abs(weight * bend(time, kept[time])) * radius + lipschitz * radius**2 / 2
                rest[e, f] += lipschitz * whole / 2 * abs(one * other) + share * known_eta
                third_event = factor * known_eta + max(bent.values(), default=0.0) * abs(one * other)
                later.setdefault((e, f), []).append(third_event)
                eta[e, f] = eta[e, f] * norm + second * abs(one * other)
            elif times[f] == time and times[e] < time:
                quadratic = bend(time, actions[f]) - bend(time, kept[time])
                pairs[e, f] += weight * (turned[f] * one + quadratic * one**2 / 2)
                cubic = abs(one) ** 3 if changes == 2 else (before + epsilon) ** 2 * abs(one)
                rest[e, f] += 2 * lipschitz / 6 * cubic
                eta[e, f] = abs(turned[f] * one) + second * before * abs(one)
        spread = max((abs(turned[f]) * before + second * before**2 for f in others), default=0.0)
        steps = {}
        for (e, f), size in eta.items():
            if times[f] <= time and times[e] != times[f]:
                steps[times[e], times[f]] = max(steps.get((times[e], times[f]), 0.0), size)
        excess = max(excess, largest / norm)
        mutual = changes * (changes - 1) / 2 * max(steps.values(), default=0.0)
        if changes > 3:
            ends = [
                sum(
                    sorted((size for pair, size in steps.items() if when in pair), reverse=True)[
                        : changes - 1
                    ]
                )
                for when in set(times)
            ]
            mutual = sum(sorted(ends, reverse=True)[:changes]) / 2
        epsilon = min(largest * epsilon + second * whole**2 / 2 + spread, excess**known * mutual)
    for pair, sizes in later.items():
        rest[pair] += sum(sorted(sizes, reverse=True)[:known])
    apart = [(e, f) for e, f in pairs if times[e] != times[f]]
    return {pair: pairs[pair] + rest[pair] for pair in apart}, {pair: rest[pair] for pair in apart}


@pytest.mark.parametrize(
    ("seed", "horizon", "changes"),
    [(0, 3, 2), (1, 4, 2), (2, 6, 2), (3, 5, 3), (4, 6, 3), (5, 6, 4), (6, 7, 5)],
)
def test_the_bound_of_a_single_state_is_that_of_the_equations(seed, horizon, changes):
    objective = curved_episode(seed, horizon, changes, 1, 3)
    trajectory, gradient, events = events_of(objective)
    found = gain_bound(trajectory, gradient, events, changes)
    wanted, rest = scalar_bound(objective, changes)
    assert len(wanted) > 3
    for (e, f), size in wanted.items():
        assert float(found.rest[e, f]) == pytest.approx(rest[e, f], rel=1e-9, abs=1e-12)
        assert float(found.pairs[e, f]) == pytest.approx(size, rel=1e-9, abs=1e-11)
        assert float(found.pairs[e, f]) >= size


def events_of_change_events(objective, times=None, choices=None, effort=None):
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
    _, events = events_of_change_events(objective)
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
    _, events = events_of_change_events(objective)
    assert 2 not in events.times.tolist()
    assert len(events.times) == 4 * 3
    choices = torch.ones(5, 4, dtype=torch.bool)
    choices[:, 1] = choices[3] = False
    _, fewer = events_of_change_events(objective, choices=choices)
    kept = [
        place
        for place, (time, action) in enumerate(
            zip(events.times.tolist(), events.actions.tolist(), strict=True)
        )
        if time != 3 and action != 1
    ]
    for name in ("times", "actions", "effects", "gains"):
        torch.testing.assert_close(getattr(fewer, name), getattr(events, name)[kept], atol=1e-12, rtol=0)


def test_without_a_step_to_change_there_is_no_event():
    objective, effort = curved_episode(0, 5), Effort()
    _, events = events_of_change_events(objective, times=[], effort=effort)
    assert events.effects.shape == (0, 5, 2)
    assert events.gains.shape == events.times.shape == events.actions.shape == (0,)
    assert events.first == 4
    assert effort.network_evaluations == 0


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), count=st.integers(0, 6), open_=st.sets(st.integers(0, 4), min_size=1))
def test_no_set_of_events_displaces_a_state_by_more_than_the_reach(seed, count, open_):
    _, events = events_of_change_events(curved_episode(seed, 6, actions=3), times=sorted(open_))
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
    _, events = events_of_change_events(curved_episode(seed, 7), times=sorted(open_))
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
    seed=st.integers(0, 10_000), horizon=st.integers(3, 7), changes=st.integers(1, 4), learnt=st.booleans()
)
def test_sets_of_events_gain_what_a_replay_of_their_sequence_gains(seed, horizon, changes, learnt):
    make = transition_episode if learnt else curved_episode
    objective = make(seed, horizon, changes, 2, 3)
    gradient, events = events_of_change_events(objective)
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
