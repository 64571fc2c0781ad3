import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.mechanisms.trajectory import CurvedTrajectory, replay
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.change_events import ChangeEvents, change_events, roll_out
from rehearsal_torch.search.sequences.decision_process import Effort
from rehearsal_torch.search.sequences.gain_bound import gain_bound
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
@settings(max_examples=100, deadline=None, derandomize=True)
@instances
def test_no_set_gains_more_than_its_bound(seed, horizon, changes, width, levels, learnt):
    objective = (
        transition_episode(seed, horizon, changes, width, levels)
        if learnt
        else curved_episode(seed, horizon, changes, width, levels)
    )
    changes = min(changes, horizon - 1)
    trajectory, gradient, events = events_of(objective)
    bound = gain_bound(trajectory, gradient, events, changes)
    assert bound.finite
    sets = random_sets(events, changes, torch.Generator().manual_seed(seed))
    slack = bounds_of(bound, sets) - exact_gains(objective, events, sets)
    assert slack.min() > -1e-9
    # The rest also bounds from below: the model is two-sided.
    rest = torch.stack([bound.rest[row[row >= 0]][:, row[row >= 0]].sum() for row in sets])
    assert (slack - 2 * rest).max() < 1e-9


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
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


@pytest.mark.slow
@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), changes=st.integers(2, 4))
def test_affine_maps_leave_only_what_changes_of_slope_do(seed, changes):
    """Where all actions share one affine map, gains add up, and the bound knows it."""
    objective = curved_episode(seed, 7, changes, 3, 4, bent=0.0)
    trajectory, gradient, events = events_of(objective)
    bound = gain_bound(trajectory, gradient, events, changes)
    assert bound.rest.max() < 1e-12
    sets = random_sets(events, changes, torch.Generator().manual_seed(seed))
    torch.testing.assert_close(
        bounds_of(bound, sets), exact_gains(objective, events, sets), atol=1e-9, rtol=1e-9
    )


def test_the_rest_is_of_third_order():
    """Actions with effects ten times smaller leave a rest at least two hundred times smaller."""
    rests = []
    for spread in (0.3, 0.03):
        trajectory, gradient, events = events_of(transition_episode(4, 7, 3, 3, 4, spread=spread))
        rests.append(float(gain_bound(trajectory, gradient, events, 3).rest.max()))
    assert rests[1] < rests[0] / 200
