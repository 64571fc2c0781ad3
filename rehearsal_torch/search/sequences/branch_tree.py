"""The tree of `branch_and_bound`: paths on which some changes have been made, expanded best bound first, and
the enumeration of the sets of events that may still improve on the incumbent.

Given gains D(e) and pair bounds W(e, f) with gain(E) <= sum D + sum W for all sets of at most m events at
different times (`gain_bound`), find all sets whose bound exceeds a threshold. Let A_P(f) = D(f) + sum over e
in P of W(e, f). If j more events, later than all of P, are added to P, each takes a share of the bounds of
their mutual pairs, V(f, f') + V(f', f) = W(f, f'), so that

    gain <= S(P) + sum over the j best time steps of max(0, max_{f there} (A_P(f) + H(f))),

with H(f) the sum of the j - 1 largest of max(0, max V(f, f')) over the other open time steps. Two uses:

- sieve: P = {e}, with the others at any other time, and P = {}; events that cannot belong to a better set
  are dropped, which lowers the maxima for the remaining ones, until nothing changes;
- layers: sets grow event by event in the order of time, a whole layer in one batch.

The bound holds for any shares, and depends on them strongly. Equal halves let a good event take its pairs
with events that are never worth choosing. So the event that is worth less takes more,

    V(f, f') = W(f, f') / (1 + exp((U(f) - U(f')) / tau)),

with U(f) = D(f) at first, then the mean of D(f) and D(f) + H(f). Of these two and of equal halves, those
shares are kept whose bound with P = {} is lowest: at 30 time steps and 8 changes it comes within 7 % of the
largest bound of a set, where halves are up to 2.5 times as high.

Source: the knapsack-like relaxation with shares of the pairs is that of the quadratic knapsack problem
(Gallo, Hammer and Simeone, 1980; Caprara, Pisinger and Toth, 1999, choose the shares by subgradients).
"""

import heapq
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor

from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.mechanisms.mechanism import CurvedTrajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import Budget
from rehearsal_torch.search.sequences.decision_process import Effort, limit_reached
from rehearsal_torch.search.sequences.gain_bound import (
    ChangeEvents,
    GainBound,
    change_events,
    gain_bound,
    roll_out,
)

WIDTH = 0.1  # tau of the shares, in units of the bound of one of the m events under equal halves


@dataclass(frozen=True)
class EventSets:
    """The result of an enumeration."""

    sets: Tensor  # Indices of the events of each set in the order of time, padded with -1, (N, m) long
    bounds: Tensor  # Upper bound on the gain of each set, (N,)
    complete: bool  # Whether these are all sets above the threshold; if not, there are more than allowed
    firsts: Tensor  # Upper bounds of sets of two or more that begin with each event, (n,); -inf below
    grown: int  # Number of sets that were extended


class SetModel:
    """Bounds over sets of the events, (n,) in the order of time, of one gain bound."""

    def __init__(self, bound: GainBound, times: Tensor) -> None:
        self.bound, self.times, self.changes = bound, times, bound.changes
        self.gains, self.pairs = bound.gains, bound.pairs
        slots, slot_of_event = torch.unique(times, return_inverse=True)
        counts = torch.bincount(slot_of_event, minlength=len(slots))
        start = counts.cumsum(0) - counts
        lane = torch.arange(int(counts.max()) if len(counts) else 1, device=times.device)
        # Events of one time step side by side; missing lanes point to a last column of minus infinity.
        self.table = torch.where(lane < counts.unsqueeze(1), start.unsqueeze(1) + lane, len(times))
        self.slot, self.slots = slot_of_event, len(slots)
        self.mutual, self.levels = self._choose_shares()

    def sieve(self, threshold: float) -> tuple[Tensor, Tensor]:
        """The events that may belong to a set above the threshold, (n',), and the bound of each, (n,)."""
        rest, worth = self.changes - 1, self.gains + self._best_shares(self.changes, self.mutual)
        score = self.gains + self.pairs + self._best_shares(self.changes - 1, self.mutual)
        best = self._slot_max(score).clamp_min_(0)
        bounds = self.gains + (best.topk(min(rest, self.slots), -1).values.sum(-1) if rest else 0)
        # Without P, the event stands at its own time step, among the best of the others.
        levels = self.levels.expand(self.slots, -1).clone().fill_diagonal_(0)
        forced = worth + levels.topk(min(rest, self.slots), -1).values.sum(-1)[self.slot] if rest else worth
        bounds = torch.minimum(bounds, forced)
        return (bounds > threshold).nonzero()[:, 0], bounds

    def search(self, threshold: float, max_sets: int) -> EventSets:
        """All sets with a bound above the threshold, unless a layer has more than `max_sets` sets."""
        sets = torch.zeros(1, 0, dtype=torch.long, device=self.times.device)
        totals, scores = self.gains.new_zeros(1), self.gains.unsqueeze(0)
        sets_above, bounds, extended = [sets.new_zeros(0, self.changes)], [totals[:0]], 0
        firsts, ended = (torch.full_like(self.gains, -torch.inf) for _ in range(2))
        for size in range(self.changes):
            extended += len(sets)
            growth = self._grow(sets, totals, scores, self.changes - size, threshold, max_sets)
            if growth is None:
                return EventSets(sets_above[0], bounds[0], False, firsts, extended)
            row, event, ceiling = growth
            totals, sets = totals[row] + scores[row, event], torch.cat([sets[row], event.unsqueeze(1)], 1)
            scores = scores[row] + self.pairs[event]
            full = totals > threshold
            if size:
                sets_above.append(torch.nn.functional.pad(sets[full], (0, self.changes - size - 1), value=-1))
                bounds.append(totals[full])
                ended.scatter_reduce_(0, sets[full, 0], totals[full], "amax")
            # Sets that end here stay above the threshold, even if none of them can be extended.
            firsts = ended.scatter_reduce(0, sets[:, 0], ceiling, "amax")
        return EventSets(torch.cat(sets_above), torch.cat(bounds), True, firsts, extended)

    def followers(self, first: int, threshold: float) -> Tensor:
        """The events that may follow the given one in a set with a gain above the threshold."""
        slot, further = int(self.slot[first]), self.changes - 1
        mutual = self.mutual[:, slot + 1 :]
        score = self.gains + self.pairs[first] + self._best_shares(further, mutual)
        score = score.masked_fill(self.slot <= slot, -torch.inf)
        levels = self._slot_max(score.unsqueeze(0))[0].clamp_min_(0)
        best = torch.nn.functional.pad(levels, (0, further)).topk(further).values
        # Its own time step leaves the best ones, or the last of them does.
        bounds = self.gains[first] + score + best.sum() - levels[self.slot].clamp_min(best[-1])
        return (bounds > threshold).nonzero()[:, 0]

    def promising(self, width: int) -> Tensor:
        """By beam search, the `width` best sets of m events by the model without its rest, (N, m) long."""
        sets = torch.zeros(1, 0, dtype=torch.long, device=self.times.device)
        totals, scores = self.gains.new_zeros(1), self.gains.unsqueeze(0)
        estimated_pairs = self.pairs - self.bound.rest - self.bound.rest.mT
        for _ in range(min(self.changes, self.slots)):
            # A set may be found in any order of its events; sorting merges duplicates.
            best = (totals.unsqueeze(1) + scores).flatten().topk(min(4 * width, scores.numel()))
            row = best.indices[best.values > -torch.inf].div(len(self.gains), rounding_mode="floor")
            event = best.indices % len(self.gains)
            event = event[best.values > -torch.inf]
            sets = torch.cat([sets[row], event.unsqueeze(1)], 1).sort(1).values
            totals, scores = totals[row] + scores[row, event], scores[row] + estimated_pairs[event]
            sets, distinct = _distinct(sets)
            order = totals[distinct].topk(min(width, len(distinct))).indices
            sets, totals, scores = sets[order], totals[distinct[order]], scores[distinct[order]]
        return torch.nn.functional.pad(sets, (0, self.changes - sets.shape[1]), value=-1)

    def _grow(
        self, sets: Tensor, totals: Tensor, scores: Tensor, left: int, threshold: float, max_sets: int
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """Rows, events and bounds of all sets grown by one; None if more than `max_sets`."""
        rows, events, ceilings, count = [], [], [], 0
        last = self.slot[sets[:, -1]] if sets.shape[1] else torch.full((len(sets),), -1, device=sets.device)
        later = self._shares_from(left - 1)
        size = max(1, 1_000_000 // (1 + len(self.gains) * max(1, left)))
        for part in torch.arange(len(sets), device=sets.device).split(size):
            allowed = self.slot > last[part].unsqueeze(1)
            score = scores[part].masked_fill(~allowed, -torch.inf)
            ceiling = totals[part].unsqueeze(1) + score
            if left > 1:
                # After f, each of the left - 1 best later steps is maximised on its own.
                later_levels = self._slot_max(score + later[last[part] + 1]).clamp_min_(0)
                ceiling = ceiling + later[last[part] + 1] + _best_after(later_levels, left - 1)[:, self.slot]
            row, event = (ceiling > threshold).nonzero(as_tuple=True)
            count += len(row)
            if count > max_sets and sets.shape[1]:
                return None
            rows.append(part[row])
            events.append(event)
            ceilings.append(ceiling[row, event])
        return torch.cat(rows), torch.cat(events), torch.cat(ceilings)

    def _shares_from(self, further: int) -> Tensor:
        """H(f) for that many further events at slots from s on, (slots + 1, n)."""
        if further < 1:
            return self.gains.new_zeros(self.slots + 1, len(self.gains))
        later = (self.mutual[:, slot:] for slot in range(self.slots + 1))
        return torch.stack([self._best_shares(further + 1, mutual) for mutual in later])

    def _best_shares(self, events: int, mutual: Tensor) -> Tensor:
        """H(f) if `events` are added in total, (n,)."""
        count = min(events - 1, mutual.shape[1])
        return mutual.topk(count, -1).values.sum(-1) if count > 0 else torch.zeros_like(self.gains)

    def _choose_shares(self) -> tuple[Tensor, Tensor]:
        """Largest shares V(f, f'), (n, slots), and best events' bounds, (slots,), of the best choice."""
        best = self._relaxation(0.5 * self.pairs)
        if self.changes < 2 or self.slots < 2 or not float(best[2]) > 0:
            return best[0], best[1]
        unit = best[2] / self.changes
        pairs = self.pairs.masked_fill(self.pairs == -torch.inf, 0.0)
        worth = self.gains
        for _ in range(2):
            share = torch.sigmoid((worth - worth.unsqueeze(1)) / (WIDTH * unit))
            relaxed = self._relaxation(share * pairs)
            best = relaxed if float(relaxed[2]) < float(best[2]) else best
            worth = self.gains + 0.5 * self._best_shares(self.changes, relaxed[0])
        return best[0], best[1]

    def _relaxation(self, shares: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The largest share at each time step, (n, slots), the bounds of its best event and of any set."""
        mutual = self._slot_max(shares).clamp_min_(0)
        # Events of one time step exclude each other.
        mutual[torch.arange(len(mutual), device=mutual.device), self.slot] = 0.0
        worth = self.gains + self._best_shares(self.changes, mutual)
        levels = self._slot_max(worth.unsqueeze(0))[0].clamp_min_(0)
        return mutual, levels, levels.topk(min(self.changes, self.slots)).values.sum()

    def _slot_max(self, scores: Tensor) -> Tensor:
        """The largest score at each time step, (N, n) -> (N, slots)."""
        padded = torch.nn.functional.pad(scores, (0, 1), value=-torch.inf)
        return padded[:, self.table].amax(-1)


def _best_after(values: Tensor, count: int) -> Tensor:
    """For each slot, the sum of the `count` largest values at later slots, (N, slots) -> (N, slots)."""
    total = torch.zeros_like(values)
    largest = values.new_zeros(min(count, values.shape[1]), len(values))
    for slot in range(values.shape[1] - 1, -1, -1):
        total[:, slot] = largest.sum(0)
        value = values[:, slot]
        for slot_value in largest:
            lower = torch.minimum(slot_value, value)
            torch.maximum(slot_value, value, out=slot_value)
            value = lower
    return total


def _distinct(sets: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows, and the index of the first occurrence of each."""
    rows, group = torch.unique(sets, dim=0, return_inverse=True)
    order = torch.arange(len(sets), device=sets.device)
    return rows, torch.full_like(rows[:, 0], len(sets)).scatter_reduce_(0, group, order, "amin")


QUICK = 2_000  # Sets that are enumerated before the model is recomputed for the remaining events
SHRUNK = 0.9  # The model is recomputed when at most this share of its events remains
BEAM = 32  # Promising sets of the model that are rolled out for the incumbent


@dataclass(frozen=True)
class Limits:
    """Limits of the search; see `branch_and_bound`."""

    leaves: int
    pool: int
    looseness: float
    budget: Budget
    nodes: int | None


@dataclass(frozen=True)
class _Node:
    """A path with changes, and the events that may be added, (T - 1, A) bool; `rank` is minus its bound."""

    rank: float
    path: Tensor
    kept: Tensor
    gain: float
    left: int
    choices: Tensor


class EventTree:
    """Open nodes, the incumbent, and counters of the work done; the trajectory bounds its curvature."""

    def __init__(self, objective: CounterfactualReturn, effort: Effort, limits: Limits) -> None:
        assert isinstance(objective.trajectory, CurvedTrajectory)
        gradient = objective.gradient()
        assert gradient is not None
        self.objective, self.effort, self.limits = objective, effort, limits
        self.observed, self.open = objective.outcome(), objective.open.tolist()
        self.trajectory, self.gradient = objective.trajectory, gradient.to(objective.trajectory.states)
        self.tolerance = objective.rounding(1e-9, max(1.0, abs(self.observed)))
        self.best, self.sequence = 0.0, objective.observed
        self.root, self.loose, self.modelled, self.recentred, self.rolled_out = 0.0, "", False, 0, 0
        self._ties, self._given_up = count(), -torch.inf
        changes = min(objective.changes, len(self.open))
        self._heap: list[tuple[float, int, _Node]] = []  # by descending bounds, then as they came
        if changes:
            states, observed = self.trajectory.states, objective.observed
            self._push(_Node(-torch.inf, states, observed, 0.0, changes, objective.choices))

    @property
    def bound(self) -> float:
        """Upper bound on the gain of any changes; infinite if the model at the root has no finite bound."""
        return torch.inf if not self.modelled else max(self.best, self.root)

    def gap(self) -> float:
        """Upper bound on how far the optimum lies above the incumbent; 0 within the tolerance."""
        bound = max(self._given_up, -self._heap[0][0] if self._heap else -torch.inf)
        return bound - self.best if bound > self.best + self.tolerance else 0.0

    def run(self) -> str:
        """Expands nodes until none can be better; returns "", or which limit ended the search."""
        while self._heap and -self._heap[0][0] > self.best + self.tolerance:
            # The root is always completed.
            if self.recentred and (stop := limit_reached(self.limits.nodes, self.effort, self.limits.budget)):
                return stop
            self._expand(heapq.heappop(self._heap)[-1])
            if self.loose:
                return ""
        return "" if self.gap() == 0 else f"gave up nodes beyond pool={self.limits.pool}"

    def _expand(self, node: _Node) -> None:
        times = node.choices.any(-1).nonzero()[:, 0].tolist()
        events = change_events(
            self.trajectory, self.gradient, node.path, node.kept, times, self.effort, node.choices
        )
        events = replace(events, gains=ranked(events.gains))
        changes, is_root = min(node.left, len(times)), not self.recentred
        self.recentred += 1
        self.effort.expanded += 1
        self.effort.generated += len(events.gains)
        if not changes:
            return
        best_event = int(events.gains.argmax())
        sequence = node.kept.clone()
        sequence[events.times[best_event]] = events.actions[best_event]
        self._offer(node.gain + float(events.gains[best_event]), sequence)
        if changes == 1:
            self.root = max(0.0, float(events.gains[best_event])) if is_root else self.root
            return
        bound = gain_bound(self.trajectory, self.gradient, events, changes)
        if not bound.finite:
            if is_root:
                self.loose = "the curvature on the ball of reachable states has no finite bound"
            self._branch(node, events, torch.full_like(events.gains, torch.inf), None)
            return
        model = SetModel(bound, events.times)
        if is_root:
            self.root, self.modelled = max(0.0, float(model.sieve(torch.inf)[1].max())), True
        self._roll_out(node, events, model.promising(BEAM))
        scale = max(self.best, float(events.gains.abs().max()))
        if is_root and self.root > self.limits.looseness * scale + self.tolerance:
            self.loose = (
                f"its bound on the gain, {self.root:.6g}, is more than looseness={self.limits.looseness:g} "
                f"times the largest gain or loss, {scale:.6g}"
            )
            return
        events, model = self._sieve(node, events, model)
        event_sets = model.search(self._threshold(node), min(QUICK, self.limits.leaves))
        self.effort.expanded += event_sets.grown
        count = len(bound.gains)
        while not event_sets.complete and len(events.gains) <= SHRUNK * count:
            count = len(events.gains)
            model = SetModel(gain_bound(self.trajectory, self.gradient, events, changes), events.times)
            events, model = self._sieve(node, events, model)
            event_sets = model.search(self._threshold(node), min(QUICK, self.limits.leaves))
            self.effort.expanded += event_sets.grown
        if not event_sets.complete:
            event_sets = model.search(self._threshold(node), self.limits.leaves)
            self.effort.expanded += event_sets.grown
        if event_sets.complete:
            self._close(node, events, event_sets)
        else:
            self._branch(node, events, event_sets.firsts, model)

    def _threshold(self, node: _Node) -> float:
        """The gain over the node's path that a set must exceed to improve on the incumbent."""
        return self.best + self.tolerance - node.gain

    def _sieve(self, node: _Node, events: ChangeEvents, model: SetModel) -> tuple[ChangeEvents, SetModel]:
        """The events that may still belong to a better set, and their model."""
        while len(events.gains):
            promising, _ = model.sieve(self._threshold(node))
            if len(promising) == len(events.gains):
                break
            model = SetModel(model.bound.only(promising), events.times[promising])
            events = events.only(promising)
        return events, model

    def _close(self, node: _Node, events: ChangeEvents, event_sets: EventSets) -> None:
        """Rolls out all sets that may be better, best bound first."""
        for batch in event_sets.bounds.argsort(descending=True).split(1024):
            if len(batch) and float(event_sets.bounds[batch[0]]) > self._threshold(node):
                self._roll_out(node, events, event_sets.sets[batch])

    def _roll_out(self, node: _Node, events: ChangeEvents, sets: Tensor) -> None:
        gains, sequences = roll_out(self.trajectory, self.gradient, events, sets, self.effort)
        self.effort.generated += len(sets)
        self.rolled_out += len(sets)
        best = int(gains.argmax())
        self._offer(node.gain + float(gains[best]), sequences[best])

    def _offer(self, gain: float, sequence: Tensor) -> None:
        """Updates the incumbent if the sequence is better by more than rounding."""
        if gain > self.best + 1e-3 * self.tolerance:
            self.best, self.sequence = gain, sequence

    def _branch(self, node: _Node, events: ChangeEvents, bounds: Tensor, model: SetModel | None) -> None:
        """One child for each event that may be the first of a better set, with those that may follow it."""
        threshold = self._threshold(node)
        for event in (bounds > threshold).nonzero()[:, 0].tolist():
            actions, time = node.kept.clone(), int(events.times[event])
            actions[time] = events.actions[event]
            if model is None:
                choices = node.choices.clone()
                choices[: time + 1] = False
            else:
                followers = model.followers(event, threshold)
                choices = torch.zeros_like(node.choices)
                choices[events.times[followers], events.actions[followers]] = True
            if not choices.any():
                continue
            rank = max(node.rank, -(node.gain + float(bounds[event])))
            gain = node.gain + float(events.gains[event])
            path = node.path + events.effects[event]
            self._push(_Node(rank, path, actions, gain, node.left - 1, choices))
        if len(self._heap) > self.limits.pool:
            ordered = sorted(self._heap)
            self._given_up = max(self._given_up, -ordered[self.limits.pool][0])
            self._heap = ordered[: self.limits.pool]

    def _push(self, node: _Node) -> None:
        heapq.heappush(self._heap, (node.rank, next(self._ties), node))
