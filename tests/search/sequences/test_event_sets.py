import math
from itertools import combinations, pairwise

import pytest
import torch

from rehearsal_torch.search.sequences.event_sets import SetModel
from rehearsal_torch.search.sequences.gain_bound import GainBound
from tests.toys.plain_event_sets import PlainSets


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


# The seed, time steps, events at each of them, m, and the size of the pairs.
SIZES = [(1, 4, 3, 3, 1.0), (2, 4, 2, 4, 0.3), (3, 3, 3, 2, 0.5), (4, 2, 3, 2, 1.0), (5, 2, 3, 3, 0.2)]
SIZES += [(6, 5, 2, 3, 0.1), (7, 3, 2, 1, 1.0), (8, 1, 3, 2, 1.0)]


@pytest.mark.parametrize("size", SIZES)
def test_events_are_bounded_by_the_shares_of_their_pairs(size) -> None:
    plain = PlainSets(*size)
    wanted = plain.sieve()
    for threshold in (-math.inf, 0.0, sorted(wanted)[len(wanted) // 2] + 1e-9, math.inf):
        kept, bounds = plain.model.sieve(threshold)
        assert bounds.tolist() == pytest.approx(wanted, abs=1e-12)
        assert kept.tolist() == [event for event in plain.events if wanted[event] > threshold]
    edge = float(bounds[0])
    assert 0 not in plain.model.sieve(edge)[0].tolist(), "a bound equal to the threshold is not above it"


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_the_bounds_have_the_unit_of_the_gains(scale: float) -> None:
    for size in SIZES[:4]:
        plain, other = PlainSets(*size), PlainSets(*size, scale=scale)
        assert (other.model.sieve(0.0)[1] / scale).tolist() == pytest.approx(plain.sieve(), abs=1e-10)


@pytest.mark.parametrize("size", SIZES[:6])
def test_followers_are_those_whose_bound_is_above_the_threshold(size) -> None:
    plain = PlainSets(*size)
    for first in plain.events:
        bounds = plain.followers(first)
        cuts = sorted(bounds.values())
        # Sets that are bounded by the same have the same numbers up to rounding.
        for threshold in [-100.0, *((a + b) / 2 for a, b in pairwise(cuts) if b - a > 1e-9), 100.0]:
            wanted = [f for f, bound in bounds.items() if bound > threshold]
            assert plain.model.followers(first, threshold).tolist() == wanted


@pytest.mark.parametrize("size", SIZES)
def test_layers_hold_the_sets_that_may_be_better(size) -> None:
    plain = PlainSets(*size)
    for threshold in (-1.0, 0.7):
        for most in (1, 6, 30, 10_000):
            found, (sets, firsts, grown, complete) = (
                plain.model.search(threshold, most),
                plain.layers(threshold, most),
            )
            assert (found.complete, found.grown) == (complete, grown)
            rows = [tuple(event for event in row if event >= 0) for row in found.sets.tolist()]
            assert dict(zip(rows, found.bounds.tolist(), strict=True)) == pytest.approx(sets, abs=1e-12)
            assert len(rows) == len(sets)
            assert found.sets.shape[1] == plain.changes
            wanted = [firsts.get(event, -math.inf) for event in plain.events]
            assert found.firsts.tolist() == pytest.approx(wanted, abs=1e-12)


def test_a_layer_may_have_as_many_sets_as_are_allowed() -> None:
    """Four events whose sums are all above the threshold: six pairs, then four sets of three."""
    pairs = torch.zeros(4, 4, dtype=torch.float64).fill_diagonal_(-torch.inf)
    model = SetModel(
        GainBound(torch.ones(4, dtype=torch.float64), pairs, torch.zeros_like(pairs), 3), torch.arange(4)
    )
    whole = model.search(1.5, 6)
    assert whole.complete
    assert whole.sets.tolist() == [
        *([*pair, -1] for pair in combinations(range(4), 2)),
        *(list(three) for three in combinations(range(4), 3)),
    ]
    assert whole.bounds.tolist() == [2.0] * 6 + [3.0] * 4
    # A pair of events 0 and 3 has no third one after it; no set begins with the last event.
    assert whole.firsts.tolist() == [3.0, 3.0, 2.0, -math.inf]
    # The empty set, then the events and the pairs that are extended: three more may follow event 0 or 1.
    assert whole.grown == 1 + 3 + 6
    short = model.search(1.5, 5)
    assert not short.complete
    assert (short.sets.shape, short.bounds.shape) == ((0, 3), (0,))
    assert short.firsts.tolist() == [3.0, 3.0, 2.0, -math.inf]
    assert short.grown == 1 + 3
    assert model.search(2.0, 100).bounds.tolist() == [3.0] * 4, "equal to the threshold is not above it"


@pytest.mark.parametrize("size", SIZES)
def test_the_beam_holds_the_sets_of_the_largest_model_without_its_rest(size) -> None:
    plain = PlainSets(*size)
    number = min(plain.changes, len(plain.slots))
    worth = {}
    for chosen in combinations(plain.events, number):
        if len({plain.slot[event] for event in chosen}) == number:
            worth[chosen] = sum(plain.gains[event] for event in chosen) + sum(
                plain.pairs[e][f] - float(plain.rest[e, f]) for e, f in combinations(chosen, 2)
            )
    ordered = sorted(worth, key=lambda chosen: -worth[chosen])
    padding = [-1] * (plain.changes - number)
    assert plain.model.promising(500).tolist() == [[*chosen, *padding] for chosen in ordered]
    for width in (1, 3, 7):
        found = plain.model.promising(width).tolist()
        assert 1 <= len(found) <= width
        places = [ordered.index(tuple(row[:number])) for row in found]
        assert places == sorted(set(places))
    # A beam of one set adds the best event each time.
    chosen: list[int] = []
    for _ in range(number):
        added = {
            f: plain.gains[f]
            + sum(plain.pairs[e][f] - float(plain.rest[e, f] + plain.rest[f, e]) for e in chosen)
            for f in plain.events
        }
        chosen.append(max(added, key=lambda event: added[event]))
    assert plain.model.promising(1).tolist() == [[*sorted(chosen), *padding]]


def test_without_events_there_is_no_set() -> None:
    nothing = torch.zeros(0, dtype=torch.float64)
    for changes in (1, 3):
        model = SetModel(
            GainBound(nothing, nothing.view(0, 0), nothing.view(0, 0), changes), torch.zeros(0).long()
        )
        kept, bounds = model.sieve(-1.0)
        assert (len(kept), len(bounds)) == (0, 0)
        found = model.search(-1.0, 10)
        assert (found.sets.shape, len(found.firsts), found.complete, found.grown) == (
            (0, changes),
            0,
            True,
            1,
        )
