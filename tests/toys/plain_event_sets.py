"""The bounds of `event_sets` by the equations of the module, in plain numbers, event by event."""

import math

import torch

from rehearsal_torch.search.sequences.branch_tree import WIDTH, SetModel
from rehearsal_torch.search.sequences.gain_bound import GainBound


def top(values, count):
    """The sum of the `count` largest values above zero."""
    return sum(sorted((max(0.0, value) for value in values), reverse=True)[: max(0, count)])


class PlainSets:
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
