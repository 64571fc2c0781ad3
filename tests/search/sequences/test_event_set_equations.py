"""The bounds over sets of events by the equations of the module, in plain numbers, event by event."""

import math
from itertools import combinations, pairwise

import pytest
import torch

from rehearsal_torch.search.sequences.event_sets import WIDTH, SetModel
from rehearsal_torch.search.sequences.gain_bound import GainBound

SIZES = [(1, 4, 3, 3, 1.0), (2, 4, 2, 4, 0.3), (3, 3, 3, 2, 0.5), (4, 2, 3, 2, 1.0), (5, 2, 3, 3, 0.2)]
SIZES += [(6, 5, 2, 3, 0.1), (7, 3, 2, 1, 1.0), (8, 1, 3, 2, 1.0)]


def top(values, count):
    """The sum of the `count` largest values above zero."""
    return sum(sorted((max(0.0, value) for value in values), reverse=True)[: max(0, count)])


class Plain:
    """The same model in numbers; `seed`, time steps, events at each of them, m, and the size of the pairs."""

    def __init__(self, seed, slots, actions, changes, size, scale=1.0):
        stream = torch.Generator().manual_seed(seed)
        self.slots, self.changes = range(slots), changes
        self.slot = [place // actions for place in range(slots * actions)]
        self.events, count = range(slots * actions), slots * actions
        gains = torch.randn(count, generator=stream, dtype=torch.float64) * scale
        pairs = torch.randn(count, count, generator=stream, dtype=torch.float64).triu(1) * size * scale
        rest = torch.rand(count, count, generator=stream, dtype=torch.float64).triu(1) * size * scale
        times = torch.tensor(self.slot)
        same = times.unsqueeze(0) == times.unsqueeze(1)
        pairs = (pairs + pairs.mT).masked_fill(same, -torch.inf)
        self.gains, self.pairs, self.rest = gains.tolist(), pairs.tolist(), rest.masked_fill(same, 0.0)
        # Time steps need not be consecutive.
        self.model = SetModel(GainBound(gains, pairs, self.rest, changes), 2 * times + 1)
        self.mutual, self.levels = self.shared()

    def at(self, slot):
        return [event for event in self.events if self.slot[event] == slot]

    def relaxed(self, share):
        """V at each other step, the best of each step, and the bound without P, for shares of the pairs."""
        mutual = [
            [
                max(0.0, *(share(f, g) * self.pairs[f][g] for g in self.at(slot)))
                if slot != self.slot[f]
                else 0.0
                for slot in self.slots
            ]
            for f in self.events
        ]
        worth = [self.gains[f] + top(mutual[f], self.changes - 1) for f in self.events]
        levels = [max(0.0, *(worth[f] for f in self.at(slot))) for slot in self.slots]
        return mutual, levels, top(levels, self.changes)

    def shared(self):
        best = self.relaxed(lambda *_: 0.5)
        unit, worth = WIDTH * best[2] / self.changes, list(self.gains)
        for _ in range(2 if self.changes > 1 and len(self.slots) > 1 and best[2] > 0 else 0):
            odds = [[math.exp((f - g) / unit) for g in worth] for f in worth]
            found = self.relaxed(lambda f, g, odds=odds: 1 / (1 + odds[f][g]))
            best = found if found[2] < best[2] else best
            worth = [self.gains[f] + 0.5 * top(found[0][f], self.changes - 1) for f in self.events]
        return best[0], best[1]

    def best(self, values, slot):
        return max(values[event] for event in self.at(slot))

    def sieve(self):
        """The lower one of the bounds with P = {e}, and with P = {} and e at its own step."""
        bounds, others = [], self.changes - 1
        for e in self.events:
            score = [self.gains[f] + self.pairs[e][f] + top(self.mutual[f], others - 1) for f in self.events]
            first = self.gains[e] + top([self.best(score, slot) for slot in self.slots], others)
            worth = self.gains[e] + top(self.mutual[e], others)
            free = [level for slot, level in enumerate(self.levels) if slot != self.slot[e]]
            bounds.append(min(first, worth + top(free, others)))
        return bounds

    def followers(self, e):
        """Bounds of the sets that begin with e and contain f, for each later f."""
        bounds, later = {}, [slot for slot in self.slots if slot > self.slot[e]]
        ahead = {
            f: self.gains[f] + self.pairs[e][f] + top([self.mutual[f][s] for s in later], self.changes - 2)
            for f in self.events
        }
        for f in self.events:
            if self.slot[f] in later:
                rest = [self.best(ahead, slot) for slot in later if slot != self.slot[f]]
                bounds[f] = self.gains[e] + ahead[f] + top(rest, self.changes - 2)
        return bounds

    def layers(self, threshold, most):
        """Sets in layers: those above the threshold, the bounds by first events, sets extended, and whether
        no layer had too many."""
        layer, found, ended, firsts, extended = {(): 0.0}, {}, {}, {}, 0
        for size in range(self.changes):
            extended += len(layer)
            grown, ceilings = {}, {}
            for chosen, total in layer.items():
                last = self.slot[chosen[-1]] if chosen else -1
                open_ = [slot for slot in self.slots if slot > last]
                left = self.changes - size - 1
                own = [self.gains[f] + sum(self.pairs[f][e] for e in chosen) for f in self.events]
                ahead = [own[f] + top([self.mutual[f][s] for s in open_], left) for f in self.events]
                for f in self.events:
                    if self.slot[f] in open_:
                        after = [self.best(ahead, slot) for slot in self.slots if slot > self.slot[f]]
                        ceiling = total + ahead[f] + top(after, left)
                        if ceiling > threshold:
                            grown[(*chosen, f)], ceilings[(*chosen, f)] = total + own[f], ceiling
            if size and len(grown) > most:
                return {}, firsts, extended, False
            layer, firsts = grown, dict(ended)
            for chosen, total in grown.items():
                if size and total > threshold:
                    found[chosen] = total
                    ended[chosen[0]] = max(ended.get(chosen[0], -math.inf), total)
            firsts = dict(ended)
            for chosen, ceiling in ceilings.items():
                firsts[chosen[0]] = max(firsts.get(chosen[0], -math.inf), ceiling)
        return found, firsts, extended, True


@pytest.mark.parametrize("size", SIZES)
def test_events_are_bounded_by_the_shares_of_their_pairs(size) -> None:
    plain = Plain(*size)
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
        plain, other = Plain(*size), Plain(*size, scale=scale)
        assert (other.model.sieve(0.0)[1] / scale).tolist() == pytest.approx(plain.sieve(), abs=1e-10)


@pytest.mark.parametrize("size", SIZES[:6])
def test_followers_are_those_whose_bound_is_above_the_threshold(size) -> None:
    plain = Plain(*size)
    for first in plain.events:
        bounds = plain.followers(first)
        cuts = sorted(bounds.values())
        # Sets that are bounded by the same have the same numbers up to rounding.
        for threshold in [-100.0, *((a + b) / 2 for a, b in pairwise(cuts) if b - a > 1e-9), 100.0]:
            wanted = [f for f, bound in bounds.items() if bound > threshold]
            assert plain.model.followers(first, threshold).tolist() == wanted


@pytest.mark.parametrize("size", SIZES)
def test_layers_hold_the_sets_that_may_be_better(size) -> None:
    plain = Plain(*size)
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
    plain = Plain(*size)
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
