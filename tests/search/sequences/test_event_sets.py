from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.search.sequences.event_sets import SetModel
from rehearsal_torch.search.sequences.gain_bound import GainBound


def random_model(
    seed: int, slots: int, actions: int, changes: int, size: float
) -> tuple[SetModel, dict[tuple[int, ...], float]]:
    """A random model, and the bounds of all sets of two or more events at different times, found one by
    one."""
    generator = torch.Generator().manual_seed(seed)
    count = slots * actions
    kept = torch.rand(count, generator=generator) < 0.8
    times = torch.arange(slots).repeat_interleave(actions)[kept]
    gains = torch.randn(len(times), generator=generator, dtype=torch.float64)
    pairs = torch.triu(
        size * torch.randn(len(times), len(times), generator=generator, dtype=torch.float64), 1
    )
    rest = torch.triu(torch.rand(len(times), len(times), generator=generator, dtype=torch.float64), 1) * 1e-3
    symmetric = (pairs + pairs.mT).masked_fill(times.unsqueeze(0) == times.unsqueeze(1), -torch.inf)
    model = SetModel(GainBound(gains, symmetric, rest, changes), times)
    sets = {}
    for number in range(2, changes + 1):
        for chosen in combinations(range(len(times)), number):
            if len({int(times[event]) for event in chosen}) == number:
                places = list(chosen)
                sets[chosen] = float(gains[places].sum() + torch.triu(pairs[places][:, places], 1).sum())
    return model, sets


models = given(
    seed=st.integers(0, 10_000),
    slots=st.integers(1, 5),
    actions=st.integers(1, 4),
    changes=st.integers(2, 4),
    size=st.sampled_from([0.0, 0.1, 1.0]),
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@models
def test_finds_exactly_the_sets_above_a_threshold(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    threshold = 1.0
    found = model.search(threshold, 1_000_000)
    assert found.complete
    got = {
        tuple(event for event in row if event >= 0): bound
        for row, bound in zip(found.sets.tolist(), found.bounds.tolist(), strict=True)
    }
    wanted = {chosen: bound for chosen, bound in sets.items() if bound > threshold + 1e-9}
    assert wanted.keys() <= got.keys()
    for chosen, bound in got.items():
        assert abs(bound - sets[chosen]) < 1e-9
        assert bound > threshold


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@models
def test_the_sieve_drops_nothing_that_is_needed(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    kept, bounds = model.sieve(1.0)
    for chosen, bound in sets.items():
        assert all(bound <= float(bounds[event]) + 1e-9 for event in chosen)
        if bound > 1.0 + 1e-9:
            assert set(chosen) <= set(kept.tolist())
    assert all(float(bounds[event]) >= float(model.gains[event]) - 1e-12 for event in range(len(model.gains)))


@pytest.mark.slow
@settings(max_examples=120, deadline=None, derandomize=True)
@models
def test_first_events_are_bounded_where_sets_are_too_many(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    threshold = -1.0
    for max_sets in (1, 5, 20):
        found = model.search(threshold, max_sets)
        for chosen, bound in sets.items():
            if bound > threshold + 1e-9:
                assert bound <= float(found.firsts[chosen[0]]) + 1e-9


@settings(max_examples=60, deadline=None, derandomize=True)
@models
def test_the_followers_of_an_event_are_all_that_a_better_set_needs(seed, slots, actions, changes, size):
    model, sets = random_model(seed, slots, actions, changes, size)
    for threshold in (-1.0, 1.0):
        for chosen, bound in sets.items():
            if bound > threshold + 1e-9:
                assert set(chosen[1:]) <= set(model.followers(chosen[0], threshold).tolist())


def test_followers_are_later_and_bounded_by_the_best_of_the_other_time_steps():
    times = torch.tensor([0, 1, 1, 2, 3])
    gains = torch.tensor([1.0, 0.5, -0.4, 0.25, -2.0], dtype=torch.float64)
    nothing = torch.zeros(5, 5, dtype=torch.float64)
    pairs = nothing.masked_fill(times.unsqueeze(0) == times.unsqueeze(1), -torch.inf)
    model = SetModel(GainBound(gains, pairs, nothing, 3), times)
    # After event 0 two more: 1 + .5 + .25, with event 2 instead of event 1 .85, with event 4 1 + .5 - 2.
    for threshold, expected in ((1.7, [1, 3]), (0.8, [1, 2, 3]), (-0.6, [1, 2, 3, 4]), (1.75, [])):
        assert model.followers(0, threshold).tolist() == expected
    assert model.followers(3, -1.7).tolist() == []
    assert model.followers(3, -1.8).tolist() == [4]


def test_events_never_worth_choosing_take_the_bounds_of_their_pairs():
    # Two good events, and three bad ones that help them by less than they lose: 1 + 1 is the best sum. Equal
    # halves of the pairs let each good event gain 1/2 from a bad one that is not chosen.
    gains = torch.tensor([1.0, 1.0, -3.0, -3.0, -3.0], dtype=torch.float64)
    pairs = torch.zeros(5, 5, dtype=torch.float64)
    pairs[:2, 2:], pairs[2:, :2] = 1.0, 1.0
    pairs.fill_diagonal_(-torch.inf)
    model = SetModel(GainBound(gains, pairs, torch.zeros_like(pairs), 3), torch.arange(5))
    _, bounds = model.sieve(torch.inf)
    assert float(bounds.max()) == pytest.approx(2.0, abs=1e-9)
    # With a bad event, the best is 1 + 1 - 3 + 1 + 1.
    assert bounds[2:].tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@models
def test_promising_sets_are_sets(seed, slots, actions, changes, size):
    model, _ = random_model(seed, slots, actions, changes, size)
    if not len(model.gains):
        return
    sets = model.promising(5)
    assert 1 <= len(sets) <= 5
    for row in sets.tolist():
        events = [event for event in row if event >= 0]
        times = model.times[events].tolist()
        assert row == events + [-1] * (changes - len(events))
        assert times == sorted(set(times))


def test_a_beam_finds_the_best_of_an_additive_model():
    model, sets = random_model(3, 5, 4, 3, 0.0)
    best = max((chosen for chosen in sets if len(chosen) == 3), key=lambda chosen: sets[chosen])
    assert list(best) in model.promising(10).tolist()
