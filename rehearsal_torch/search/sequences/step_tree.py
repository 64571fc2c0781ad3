"""The tree of `branch_and_bound` for rewards that are not linear: sets of time steps, then their actions.

A group is a set of sequences: some changes have been made, on a path rolled out exactly, and the time steps
of the others are known, but not their actions (`group_bounds`). At the root there is one group for each set
of at most k open time steps. Expanding a group rolls out every action of its next change; each of these paths
is a candidate itself, and a smaller group. Where one change is left, its actions are rolled out to the end.

Groups are taken best bound first, in blocks that share the time of their next change, and dropped if their
bound does not exceed the best return found, which at first is that of greedy changes. Rewards that count
points have few different values, so that most groups end at a bound equal to it. An early end leaves a valid
gap: the largest bound of a group left over, minus the incumbent. Where there are too many sets of time steps,
or no time to bound all of them, that is the bound of any changes.

Rounding: everything is computed in float64; returns that differ by less than the tolerance of
`branch_and_bound` count as equal.
"""

import heapq
from dataclasses import dataclass
from itertools import combinations, count
from math import comb

import torch
from torch import Tensor

from rehearsal_torch.data.finite import ranked
from rehearsal_torch.mechanisms.mechanism import CurvedTrajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.baselines import greedy_sequence
from rehearsal_torch.search.sequences.branch_tree import Limits
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort, limit_reached
from rehearsal_torch.search.sequences.group_bounds import GroupBounds, Paths

NUMBERS = 4_000_000
"""Numbers in the largest tensor of an expansion, which bounds the memory in use."""
ROOT = 16_384
"""Groups of the root between two looks at the clock."""


@dataclass(frozen=True)
class Groups:
    """Groups whose next change is at the same time step, in the order of descending bounds.

    Attributes:
        time: The time step of the next change.
        bounds: Upper bounds of the return, (n,), descending.
        later: The time steps of the other open changes, (n, m - 1) long.
        path: A number for each path, the same for groups that share it, (n,) long.
        states: The state of the path at `time`, (n, M D).
        gathered: The rewards of the path before `time`, (n, *lanes).
        sequences: The path's actions, (n, H) int16.
    """

    time: int
    bounds: Tensor
    later: Tensor
    path: Tensor
    states: Tensor
    gathered: Tensor
    sequences: Tensor

    def part(self, rows: slice) -> "Groups":
        """Some of the groups."""
        own = (self.bounds, self.later, self.path, self.states, self.gathered, self.sequences)
        return Groups(self.time, *(tensor[rows] for tensor in own))


class StepTree:
    """Open groups, the incumbent, and counters of the work done.

    Args:
        objective: The episode; its trajectory must bound its curvature, and its reward must be bounded over
            boxes.
        limits: Limits of the search; `leaves` and `looseness` do not apply.
        sets: Maximum number of sets of time steps at the root.
        evaluations: Maximum number of single steps computed; None for no limit.
    """

    def __init__(
        self,
        objective: CounterfactualReturn,
        effort: Effort,
        limits: Limits,
        sets: int,
        evaluations: int | None,
    ) -> None:
        assert isinstance(objective.trajectory, CurvedTrajectory)
        self.objective, self.effort, self.limits = objective, effort, limits
        self.sets, self.evaluations = sets, evaluations
        self.open, self.device = objective.open.tolist(), objective.observed.device
        self.observed = objective.outcome()
        self.tolerance = objective.rounding(1e-9, max(1.0, abs(self.observed)))
        self.best, self.sequence = self.observed, objective.observed
        self.root, self.rolled_out = self.observed, 0
        # By descending bounds, then fewer later changes, then in the order of their coming.
        self._heap: list[tuple[float, int, int, Groups]] = []
        self._given_up, self._left_out = -torch.inf, ""
        self._ties = count()
        self.changes = min(objective.changes, len(self.open))
        self.process = CounterfactualProcess(objective, effort)
        self.bounds = GroupBounds(objective, objective.trajectory, self.process, self.changes)

    @property
    def bound(self) -> float:
        """Upper bound on the return of any sequence."""
        return max(self.best, self._given_up, -self._heap[0][0] if self._heap else -torch.inf)

    def gap(self) -> float:
        """Upper bound on how far the optimum lies above the incumbent; 0 within the tolerance."""
        return self.bound - self.best if self.bound > self.best + self.tolerance else 0.0

    def run(self) -> str:
        """Expands groups until none can be better; returns "", or which limit ended the search."""
        if not self.changes:
            return ""
        greedy = greedy_sequence(self.process).unsqueeze(0)
        self._offer(self.objective(greedy), greedy)
        self._plant()
        self.root = self.bound
        while self._heap and -self._heap[0][0] > self.best + self.tolerance:
            if reached := limit_reached(self.limits.nodes, self.effort, self.limits.budget):
                return reached
            if self.evaluations is not None and self.effort.network_evaluations >= self.evaluations:
                return f"stopped after evaluations={self.evaluations} single steps of the model"
            self._expand(heapq.heappop(self._heap)[-1])
        return self._left_out if self.gap() else ""

    def _plant(self) -> None:
        """The groups of the root, one for each set of time steps."""
        path = self.bounds.observed
        sets = sum(comb(len(self.open), size) for size in range(1, self.changes + 1))
        if sets > self.sets:
            self._given_up = self.bounds.anywhere()
            self._left_out = f"its {sets:,} sets of time steps are more than sets={self.sets:,}"
            return
        for size in range(1, self.changes + 1):
            times = torch.tensor(list(combinations(self.open, size)), device=self.device)
            for part in times.split(ROOT):
                if self.limits.budget.out():
                    self._given_up = self.bounds.anywhere()
                    self._left_out = self.limits.budget.reason()
                    return
                rows = torch.zeros(len(part), dtype=torch.long, device=self.device)
                self._grow(path, rows, part, path.before[:, 0], self.objective.observed.unsqueeze(0))

    def _expand(self, groups: Groups) -> None:
        """Rolls out the actions of the next change of a block of groups; puts the others back."""
        taken = int((groups.bounds > self.best + self.tolerance).sum())
        width = groups.states.shape[-1]
        others = self.process.others[groups.time]
        last = groups.later.shape[1] == 0
        steps = 1 if last else self.objective.horizon - groups.time
        most = max(1, NUMBERS // (len(others) * width * steps))
        if taken > most:
            self._push(groups.part(slice(most, taken)))
            taken = most
        self.effort.expanded += taken
        path, group = groups.path[:taken].unique(return_inverse=True)
        row = torch.arange(taken, device=self.device)
        first = torch.full_like(path, taken).scatter_reduce_(0, group, row, "amin")
        states, sequences = groups.states[first], groups.sequences[first]
        rewards = self.process.rewards(states, groups.time)
        gathered = groups.gathered[first].unsqueeze(1) + self.process.changed(rewards, groups.time)
        self.effort.generated += gathered.shape[0] * gathered.shape[1]
        if groups.time == self.objective.horizon - 1:
            self._offer(self.objective.joined(gathered), sequences, groups.time, others)
            return
        states = self.process.branch(states, groups.time).flatten(0, 1)
        if last:
            ahead = self.process.to_go(states, groups.time + 1)
            values = self.objective.joined(gathered + ahead.view_as(gathered))
            self._offer(values, sequences, groups.time, others)
            self.rolled_out += len(ahead)
            return
        following = self.bounds.roll(states, groups.time + 1)
        values = self.objective.joined(gathered + following.before[:, -1].view_as(gathered))
        self._offer(values, sequences, groups.time, others)
        sequences = sequences.repeat_interleave(len(others), 0)
        sequences[:, groups.time] = others.to(sequences).repeat(len(path))
        lane = torch.arange(len(others), device=self.device)
        rows = (group.unsqueeze(1) * len(others) + lane).flatten()
        later = groups.later[:taken].repeat_interleave(len(others), 0)
        self._grow(following, rows, later, gathered.flatten(0, 1), sequences)

    def _grow(self, paths: Paths, rows: Tensor, times: Tensor, gathered: Tensor, sequences: Tensor) -> None:
        """Bounds groups, and keeps those that may be better."""
        bounds = self.objective.joined(self.bounds.of(paths, rows, times) + gathered[rows])
        kept = bounds > self.best + self.tolerance
        bounds, rows, times = bounds[kept], rows[kept], times[kept]
        for time in times[:, 0].unique().tolist():
            here = (times[:, 0] == time).nonzero()[:, 0]
            here = here[bounds[here].argsort(descending=True)]
            path, at = rows[here], time - paths.start
            before, own = gathered[path] + paths.before[path, at], sequences[path].to(torch.int16)
            states, later = paths.states[path, at], times[here, 1:]
            self._push(Groups(time, bounds[here], later, path, states, before, own))
        self._prune()

    def _push(self, groups: Groups) -> None:
        rank = -float(groups.bounds[0]), groups.later.shape[1], next(self._ties)
        heapq.heappush(self._heap, (*rank, groups))

    def _prune(self) -> None:
        """Gives up the groups with the lowest bounds beyond the size of the pool."""
        if sum(len(groups.bounds) for *_, groups in self._heap) <= self.limits.pool:
            return
        every = torch.cat([groups.bounds for *_, groups in self._heap])
        limit = float(every.topk(self.limits.pool + 1).values[-1])
        # All of the groups with the first bound that does not fit go, so that fewer than the pool remain.
        self._given_up = max(self._given_up, limit)
        self._left_out = f"gave up nodes beyond pool={self.limits.pool}"
        heap, self._heap = self._heap, []
        for *_, groups in heap:
            taken = int((groups.bounds > limit).sum())
            if taken:
                self._push(groups.part(slice(0, taken)))

    def _offer(
        self, values: Tensor, sequences: Tensor, time: int | None = None, actions: Tensor | None = None
    ) -> None:
        """Updates the incumbent if a return is better by more than rounding."""
        flat = ranked(values.flatten())
        best = int(flat.argmax())
        if not float(flat[best]) > self.best + 1e-3 * self.tolerance:
            return
        self.best = float(flat[best])
        self.sequence = sequences[best // values[0].numel()].long()
        if time is not None and actions is not None:
            self.sequence = self.sequence.clone()
            self.sequence[time] = actions[best % len(actions)]
