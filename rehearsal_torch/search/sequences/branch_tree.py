"""The tree of `branch_and_bound`: paths on which some changes have been made, expanded best bound first."""

import heapq
from dataclasses import dataclass, replace
from itertools import count

import torch
from torch import Tensor

from rehearsal_torch.data.finite import ranked
from rehearsal_torch.mechanisms.trajectory import CurvedTrajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.change_events import ChangeEvents, change_events, roll_out
from rehearsal_torch.search.sequences.decision_process import Effort
from rehearsal_torch.search.sequences.event_sets import EventSets, SetModel
from rehearsal_torch.search.sequences.gain_bound import gain_bound

QUICK = 2_000
"""Number of sets enumerated before the model is recomputed for the remaining events."""
SHRUNK = 0.9
"""The model is recomputed when at most this share of its events remains."""
BEAM = 32
"""Number of promising sets of the model that are rolled out for the incumbent."""


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
    """A path with changes made; `rank` is minus the bound on the gain over the observed return. `choices` are
    the events that may still be added, (T - 1, A) bool.
    """

    rank: float
    path: Tensor
    kept: Tensor
    gain: float
    left: int
    choices: Tensor


class EventTree:
    """Open nodes, the incumbent, and counters of the work done.

    Args:
        objective: The episode; its trajectory must bound its curvature, and its reward must be linear.
        effort: Counters of the search effort.
        limits: Limits of the search.
    """

    def __init__(self, objective: CounterfactualReturn, effort: Effort, limits: Limits) -> None:
        assert isinstance(objective.trajectory, CurvedTrajectory)
        gradient = objective.gradient()
        assert gradient is not None
        self.effort, self.limits, self.observed = effort, limits, objective.outcome()
        self.open = objective.open.tolist()
        self.trajectory, self.gradient = objective.trajectory, gradient.to(objective.trajectory.states)
        self.tolerance = objective.rounding(1e-9, max(1.0, abs(self.observed)))
        self.best, self.sequence = 0.0, objective.observed
        self.root, self.loose, self.modelled, self.recentred, self.rolled_out = 0.0, "", False, 0, 0
        self._ties, self._given_up = count(), -torch.inf
        left = min(objective.changes, len(self.open))
        self._heap: list[tuple[float, int, _Node]] = []  # by descending bounds, then as they came
        if left:
            self._push(
                _Node(-torch.inf, self.trajectory.states, objective.observed, 0.0, left, objective.choices)
            )

    @property
    def bound(self) -> float:
        """Upper bound on the gain of any set of changes over the observed return; infinite if the model at
        the root has no finite bound.
        """
        return torch.inf if not self.modelled else max(self.best, self.root)

    def gap(self) -> float:
        """Upper bound on how far the optimum lies above the incumbent; 0 within the tolerance."""
        bound = max(self._given_up, -self._heap[0][0] if self._heap else -torch.inf)
        return bound - self.best if bound > self.best + self.tolerance else 0.0

    def run(self) -> str:
        """Expands nodes until none can be better; returns "", or which limit ended the search."""
        while self._heap and -self._heap[0][0] > self.best + self.tolerance:
            if self.limits.nodes is not None and self.effort.expanded >= self.limits.nodes and self.recentred:
                return f"stopped after node_limit={self.limits.nodes} expanded nodes"
            if self.recentred and self.limits.budget.out():
                return self.limits.budget.reason()
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
        left, first = min(node.left, len(times)), not self.recentred
        self.recentred += 1
        self.effort.expanded += 1
        self.effort.generated += len(events.gains)
        if not left:
            return
        place = int(events.gains.argmax())
        sequence = node.kept.clone()
        sequence[events.times[place]] = events.actions[place]
        self._offer(node.gain + float(events.gains[place]), sequence)
        if left == 1:
            self.root = max(0.0, float(events.gains[place])) if first else self.root
            return
        bound = gain_bound(self.trajectory, self.gradient, events, left)
        if not bound.finite:
            if first:
                self.loose = "the curvature on the ball of reachable states has no finite bound"
            self._branch(node, events, torch.full_like(events.gains, torch.inf), None)
            return
        model = SetModel(bound, events.times)
        if first:
            self.root, self.modelled = max(0.0, float(model.sieve(torch.inf)[1].max())), True
        self._roll_out(node, events, model.promising(BEAM))
        size = max(self.best, float(events.gains.abs().max()))
        if first and self.root > self.limits.looseness * size + self.tolerance:
            self.loose = (
                f"its bound on the gain, {self.root:.6g}, is more than looseness={self.limits.looseness:g} "
                f"times the largest gain or loss, {size:.6g}"
            )
            return
        events, model = self._sieve(node, events, model)
        found = model.search(self._threshold(node), min(QUICK, self.limits.leaves))
        self.effort.expanded += found.grown
        before = len(bound.gains)
        while not found.complete and len(events.gains) <= SHRUNK * before:
            before = len(events.gains)
            events, model = self._sieve(
                node, events, SetModel(gain_bound(self.trajectory, self.gradient, events, left), events.times)
            )
            found = model.search(self._threshold(node), min(QUICK, self.limits.leaves))
            self.effort.expanded += found.grown
        if not found.complete:
            found = model.search(self._threshold(node), self.limits.leaves)
            self.effort.expanded += found.grown
        if found.complete:
            self._close(node, events, found)
        else:
            self._branch(node, events, found.firsts, model)

    def _threshold(self, node: _Node) -> float:
        """The gain over the node's path that a set must exceed to improve on the incumbent."""
        return self.best + self.tolerance - node.gain

    def _sieve(self, node: _Node, events: ChangeEvents, model: SetModel) -> tuple[ChangeEvents, SetModel]:
        """The events that may still belong to a better set, and their model."""
        while len(events.gains):
            kept, _ = model.sieve(self._threshold(node))
            if len(kept) == len(events.gains):
                break
            events, model = events.only(kept), SetModel(model.bound.only(kept), events.times[kept])
        return events, model

    def _close(self, node: _Node, events: ChangeEvents, found: EventSets) -> None:
        """Rolls out all sets that may be better, best bound first."""
        for part in found.bounds.argsort(descending=True).split(1024):
            if len(part) and float(found.bounds[part[0]]) > self._threshold(node):
                self._roll_out(node, events, found.sets[part])

    def _roll_out(self, node: _Node, events: ChangeEvents, sets: Tensor) -> None:
        gains, sequences = roll_out(self.trajectory, self.gradient, events, sets, self.effort)
        self.effort.generated += len(sets)
        self.rolled_out += len(sets)
        place = int(gains.argmax())
        self._offer(node.gain + float(gains[place]), sequences[place])

    def _offer(self, gain: float, sequence: Tensor) -> None:
        """Updates the incumbent if the sequence is better by more than rounding."""
        if gain > self.best + 1e-3 * self.tolerance:
            self.best, self.sequence = gain, sequence

    def _branch(self, node: _Node, events: ChangeEvents, bounds: Tensor, model: SetModel | None) -> None:
        """One child for each event that may be the first of a better set of two or more; it is left with
        those later events that may follow by the model, or with all of them.
        """
        threshold = self._threshold(node)
        for place in (bounds > threshold).nonzero()[:, 0].tolist():
            kept, time = node.kept.clone(), int(events.times[place])
            kept[time] = events.actions[place]
            if model is None:
                choices = node.choices.clone()
                choices[: time + 1] = False
            else:
                later = model.followers(place, threshold)
                choices = torch.zeros_like(node.choices)
                choices[events.times[later], events.actions[later]] = True
            if not choices.any():
                continue
            rank = max(node.rank, -(node.gain + float(bounds[place])))
            gain = node.gain + float(events.gains[place])
            path = node.path + events.effects[place]
            self._push(_Node(rank, path, kept, gain, node.left - 1, choices))
        if len(self._heap) > self.limits.pool:
            ordered = sorted(self._heap)
            self._given_up = max(self._given_up, -ordered[self.limits.pool][0])
            self._heap = ordered[: self.limits.pool]

    def _push(self, node: _Node) -> None:
        heapq.heappush(self._heap, (node.rank, next(self._ties), node))
