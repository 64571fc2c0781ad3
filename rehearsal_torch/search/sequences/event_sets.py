"""Enumeration of the sets of events that may still improve on the incumbent.

Given gains D(e) and pair bounds W(e, f) with gain(E) <= sum D + sum W for all sets of at most m events at
different times (`gain_bound`), find all sets whose bound exceeds a threshold. Let A_P(f) = D(f) + sum over e
in P of W(e, f). If j more events, later than all of P, are added to P, each takes half of the bounds of their
mutual pairs, so that

    gain <= S(P) + sum over the j best time steps of max(0, max_{f there} (A_P(f) + H(f) / 2)),

with H(f) the sum of the j - 1 largest of max(0, max W(f, f')) over the other open time steps. Two uses:

- sieve: P = {e}, with the others at any other time; events that cannot belong to a better set are dropped,
  which lowers the maxima for the remaining ones, until nothing changes;
- layers: sets grow event by event in the order of time, a whole layer in one batch.

Source: ours; the knapsack-like relaxation is the standard one of branch and bound.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.search.sequences.gain_bound import GainBound


@dataclass(frozen=True)
class EventSets:
    """The result of an enumeration.

    Attributes:
        sets: Indices of the events of each set in the order of time, padded with -1, (N, m) long.
        bounds: Upper bound on the gain of each set, (N,).
        complete: Whether these are all sets above the threshold; if not, there are more than allowed.
        firsts: For each event, an upper bound over all sets of two or more events that begin with it, -inf
            if none is above the threshold, (n,).
        grown: Number of sets that were extended.
    """

    sets: Tensor
    bounds: Tensor
    complete: bool
    firsts: Tensor
    grown: int


class SetModel:
    """Bounds over sets of the events of one gain bound.

    Args:
        bound: The bounds on single events and pairs.
        times: Time of each event, (n,) long, ascending.
    """

    def __init__(self, bound: GainBound, times: Tensor) -> None:
        self.bound, self.gains, self.pairs, self.changes, self.times = (
            bound,
            bound.gains,
            bound.pairs,
            bound.changes,
            times,
        )
        slots, place = torch.unique(times, return_inverse=True)
        counts = torch.bincount(place, minlength=len(slots))
        start = counts.cumsum(0) - counts
        lane = torch.arange(int(counts.max()) if len(counts) else 1, device=times.device)
        # Events of one time step side by side; missing lanes point to a last column of minus infinity.
        self.table = torch.where(lane < counts.unsqueeze(1), start.unsqueeze(1) + lane, len(times))
        self.slot, self.slots = place, len(slots)
        self.mutual = self._slotwise(self.pairs).clamp_min_(0)

    def sieve(self, threshold: float) -> tuple[Tensor, Tensor]:
        """The events that may belong to a set with a gain above the threshold, (n',) long, and the bound of
        every event, (n,).
        """
        j = self.changes - 1
        half = self._half(j, self.mutual) if j > 1 else torch.zeros_like(self.gains)
        score = self.gains.unsqueeze(0) + self.pairs + half
        best = self._slotwise(score).clamp_min_(0)
        bounds = self.gains + (best.topk(min(j, self.slots), -1).values.sum(-1) if j else 0)
        return (bounds > threshold).nonzero()[:, 0], bounds

    def search(self, threshold: float, max_sets: int) -> EventSets:
        """All sets with a bound above the threshold, unless a layer has more than `max_sets` sets."""
        sets = torch.zeros(1, 0, dtype=torch.long, device=self.times.device)
        totals, scores = self.gains.new_zeros(1), self.gains.unsqueeze(0)
        found, bounds, extended = [sets.new_zeros(0, self.changes)], [totals[:0]], 0
        firsts, ended = (torch.full_like(self.gains, -torch.inf) for _ in range(2))
        for size in range(self.changes):
            extended += len(sets)
            grown = self._grow(sets, totals, scores, self.changes - size, threshold, max_sets)
            if grown is None:
                return EventSets(found[0], bounds[0], False, firsts, extended)
            row, event, ceiling = grown
            totals, sets = totals[row] + scores[row, event], torch.cat([sets[row], event.unsqueeze(1)], 1)
            scores = scores[row] + self.pairs[event]
            own = totals > threshold
            if size:
                found.append(torch.nn.functional.pad(sets[own], (0, self.changes - size - 1), value=-1))
                bounds.append(totals[own])
                ended.scatter_reduce_(0, sets[own, 0], totals[own], "amax")
            # Sets that end here stay above the threshold, even if none of them can be extended.
            firsts = ended.scatter_reduce(0, sets[:, 0], ceiling, "amax")
        return EventSets(torch.cat(found), torch.cat(bounds), True, firsts, extended)

    def promising(self, width: int) -> Tensor:
        """Beam search over the layers: at most `width` sets of m events with the largest value of the model
        without its rest, (N, m) long.
        """
        sets = torch.zeros(1, 0, dtype=torch.long, device=self.times.device)
        totals, scores = self.gains.new_zeros(1), self.gains.unsqueeze(0)
        estimated_pairs = self.pairs - self.bound.rest - self.bound.rest.mT
        for _ in range(min(self.changes, self.slots)):
            # A set may be found in any order of its events; sorting merges duplicates.
            best = (totals.unsqueeze(1) + scores).flatten().topk(min(4 * width, scores.numel()))
            row, event = (
                best.indices[best.values > -torch.inf].div(len(self.gains), rounding_mode="floor"),
                best.indices % len(self.gains),
            )
            event = event[best.values > -torch.inf]
            sets = torch.cat([sets[row], event.unsqueeze(1)], 1).sort(1).values
            totals, scores = totals[row] + scores[row, event], scores[row] + estimated_pairs[event]
            sets, first = _distinct(sets)
            keep = totals[first].topk(min(width, len(first))).indices
            sets, totals, scores = sets[keep], totals[first[keep]], scores[first[keep]]
        return torch.nn.functional.pad(sets, (0, self.changes - sets.shape[1]), value=-1)

    def _grow(
        self, sets: Tensor, totals: Tensor, scores: Tensor, left: int, threshold: float, max_sets: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """Rows and events of all sets grown by one, with their bounds; None if there are more than
        `max_sets`.
        """
        rows, events, ceilings, count = [], [], [], 0
        last = self.slot[sets[:, -1]] if sets.shape[1] else torch.full((len(sets),), -1, device=sets.device)
        later = self._later(left - 1)
        for part in torch.arange(len(sets), device=sets.device).split(
            max(1, 1_000_000 // (1 + len(self.gains) * max(1, left)))
        ):
            open_ = self.slot > last[part].unsqueeze(1)
            score = scores[part].masked_fill(~open_, -torch.inf)
            ceiling = totals[part].unsqueeze(1) + score
            if left > 1:
                # After f, left - 1 further events at later steps: each of those best steps is maximised on
                # its own.
                ahead = self._slotwise(score + 0.5 * later[last[part] + 1]).clamp_min_(0)
                ceiling = ceiling + 0.5 * later[last[part] + 1] + _best_after(ahead, left - 1)[:, self.slot]
            row, event = (ceiling > threshold).nonzero(as_tuple=True)
            count += len(row)
            if count > max_sets and sets.shape[1]:
                return None
            rows.append(part[row])
            events.append(event)
            ceilings.append(ceiling[row, event])
        return torch.cat(rows), torch.cat(events), torch.cat(ceilings)

    def _later(self, others: int) -> Tensor:
        """H(f) for `others` further events at slots from s on, (slots + 1, n)."""
        if others < 1:
            return self.gains.new_zeros(self.slots + 1, len(self.gains))
        return torch.stack(
            [self._half(others + 1, self.mutual[:, slot:]) * 2 for slot in range(self.slots + 1)]
        )

    def _half(self, events: int, mutual: Tensor) -> Tensor:
        """H(f) / 2 if `events` are added in total, (n,)."""
        count = min(events - 1, mutual.shape[1])
        return 0.5 * mutual.topk(count, -1).values.sum(-1) if count > 0 else torch.zeros_like(self.gains)

    def _slotwise(self, scores: Tensor) -> Tensor:
        """The largest score at each time step, (N, n) -> (N, slots)."""
        padded = torch.nn.functional.pad(scores, (0, 1), value=-torch.inf)
        return padded[:, self.table].amax(-1)


def _best_after(values: Tensor, count: int) -> Tensor:
    """For each slot, the sum of the `count` largest values at later slots, (N, slots) -> (N, slots)."""
    total = torch.zeros_like(values)
    kept = values.new_zeros(min(count, values.shape[1]), len(values))
    for slot in range(values.shape[1] - 1, -1, -1):
        total[:, slot] = kept.sum(0)
        fresh = values[:, slot]
        for level in kept:
            lower = torch.minimum(level, fresh)
            torch.maximum(level, fresh, out=level)
            fresh = lower
    return total


def _distinct(sets: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows, and the index of the first occurrence of each."""
    rows, place = torch.unique(sets, dim=0, return_inverse=True)
    first = torch.full((len(rows),), len(sets), device=sets.device).scatter_reduce_(
        0, place, torch.arange(len(sets), device=sets.device), "amin"
    )
    return rows, first
