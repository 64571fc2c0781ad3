"""A* search over counterfactual action sequences.

Given a node v = (x, l, t) reached with reward r, let f(v) = r + h(v), where h is an upper bound on the
remaining reward. A* expands the open node with the largest f; once no open node's f exceeds the best complete
sequence, that sequence is optimal. With the bounds of `lipschitz_bound`, h is consistent, and f never rises
along a path.

As published, the anchors of all time steps are pooled, h looks one step ahead (Eq. 11), and every path is
followed to its end node by node. The defaults reach the same answer with less work: each time step has its
own anchors; a node whose remaining path is fixed is a leaf, evaluated by one rollout; a child is bounded from
the anchors at its own time (its own Eq. 11 maximum is taken only when it is expanded, child by child); nodes
are expanded in batches; a greedy sequence prunes from the start.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 4, Eq. 11, Algorithm 2 (App. E).
"""

import heapq
import math
from dataclasses import dataclass
from itertools import count
from typing import Any, final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.question import Kind
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import Reward
from rehearsal_torch.search.budget import Budget, checked_budget
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.baselines import greedy_sequence, nothing_open
from rehearsal_torch.search.sequences.decision_process import (
    CounterfactualProcess,
    Effort,
    limit_reached,
    sequence_decision,
)
from rehearsal_torch.search.sequences.lipschitz_bound import (
    NO_SUM,
    Anchors,
    LipschitzBound,
    MonteCarlo,
    UnboundedError,
    value_constants,
)
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate


@final
class AStar(Search[CounterfactualReturn]):
    """Optimal sequences by A* with Lipschitz bounds at anchors.

    Args:
        anchors: Strategy for the choice of anchor states; None for 100 Monte Carlo sequences.
        pooled: Use the anchors of all time steps at every step (as published) instead of its own anchors.
        exact: Use exact values where the remaining path is fixed, instead of bounds (as published).
        lookahead: Bound each child by Eq. 11 (as published) instead of by the anchors at its own time.
        batch: Maximum number of nodes expanded at once; 1 is strictly best first (as published).
        incumbent: Start from the greedy sequence instead of the observed one (as published).
        budget_s: Time limit in seconds, after which the best sequence so far is returned with its gap; None
            for no limit. A step is a round of the greedy ascent, the choice of anchors, their bounds at one
            time, or the expansion of a batch.
        node_limit: Likewise, a limit on the number of expanded nodes.

    Raises:
        ValueError: if the batch is below 1, or the budget is not positive.
    """

    kind: Kind | None = "look_back"

    def __init__(
        self,
        anchors: Anchors | None = None,
        pooled: bool = False,
        exact: bool = True,
        lookahead: bool = False,
        batch: int = 256,
        incumbent: bool = True,
        budget_s: float | None = None,
        node_limit: int | None = None,
    ) -> None:
        require(batch >= 1, "a batch of at least 1 node", batch=batch)
        self.anchors = MonteCarlo() if anchors is None else anchors
        self.pooled, self.exact, self.lookahead = pooled, exact, lookahead
        self.batch, self.incumbent = batch, incumbent
        self.budget_s, self.node_limit = checked_budget(budget_s), node_limit

    def check(self, surrogate: Surrogate, **settings: Any) -> None:
        """Refuses the return of an ensemble's worst member, and rewards without a Lipschitz constant.

        Raises:
            UnboundedError: if one of them is asked for.
        """
        members = surrogate.members if isinstance(surrogate, EpisodeSurrogate) else 1
        if settings.get("members") == "worst" and members > 1:
            raise UnboundedError(NO_SUM)
        reward = settings.get("reward")
        if isinstance(reward, Reward) and isinstance(surrogate, EpisodeSurrogate):
            names = surrogate.names
            if not math.isfinite(reward.lipschitz(names, torch.ones(len(names), dtype=torch.float64))):
                raise UnboundedError(
                    "expected a reward with a Lipschitz constant, such as weights of states; this one jumps, "
                    "as scores with limits do: use branch_and_bound or greedy_changes"
                )

    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns the optimal sequence, or the best found with its gap.

        Raises:
            UnboundedError: if the trajectory or the reward has no finite Lipschitz constant.
        """
        return self.improve(objective, objective.observed)

    @torch.no_grad()
    def improve(self, objective: CounterfactualReturn, known: Tensor) -> Decision:
        """Searches from a known sequence, (H,) long: the answer is at least as good, and fewer nodes have to
        be expanded.

        Raises:
            UnboundedError: if the trajectory or the reward has no finite Lipschitz constant.
            ValueError: if the sequence makes more than k changes.
        """
        changes = int((known != objective.observed).sum())
        require(changes <= objective.changes, f"at most {objective.changes} changes", changes=changes)
        budget, effort = Budget(self.budget_s), Effort()
        lipschitz = value_constants(objective)
        if nothing_open(objective):
            facts: dict[str, Any] = {"anchors": 0, "distances": 0}
            return sequence_decision(
                objective, objective.observed, effort, budget, search="astar", gap=0.0, **facts
            )
        process = CounterfactualProcess(objective, effort)
        start = greedy_sequence(process, budget) if self.incumbent else objective.observed
        if bool((known != objective.observed).any()) and float(objective(known)) > float(objective(start)):
            start = known
        effort.expanded = effort.generated = 0
        anchors = self.anchors(process, lipschitz)
        if self.pooled:
            anchors = [torch.unique(torch.cat(anchors), dim=0)] * process.horizon
        else:
            own = process.trajectory.states.split(1)
            anchors = [torch.cat(both) for both in zip(own, anchors, strict=True)]
        bound = LipschitzBound(process, anchors, lipschitz, self.exact, budget)
        frontier = _Frontier(bound, start, self.lookahead)
        stopped = self._run(frontier, effort, budget)
        gap = 0.0 if not stopped else frontier.top() - frontier.value
        size = len(anchors[0]) if self.pooled else sum(len(states) for states in anchors)
        return sequence_decision(
            objective,
            frontier.sequence,
            effort,
            budget,
            search="astar",
            gap=gap,
            equal=frontier.tolerance,
            reason=stopped,
            anchors=size,
            distances=bound.distances,
            root_bound=frontier.root,
        )

    def _run(self, frontier: "_Frontier", effort: Effort, budget: Budget) -> str:
        """Expands until no open node can be better; returns "", or which limit ended the search."""
        while frontier.top() > frontier.value + frontier.tolerance:
            if reached := limit_reached(self.node_limit, effort, budget):
                return reached
            left = self.batch if self.node_limit is None else self.node_limit - effort.expanded
            frontier.expand(min(self.batch, left))
        return ""


@dataclass
class _Block:
    """Open nodes of one time and one number of changes, by descending f."""

    time: int
    spent: int
    f: Tensor
    states: Tensor
    totals: Tensor
    sequences: Tensor

    def part(self, rows: slice) -> "_Block":
        """Some of the nodes."""
        own = (self.f, self.states, self.totals, self.sequences)
        return _Block(self.time, self.spent, *(tensor[rows] for tensor in own))


class _Frontier:
    """The open nodes and the best complete sequence."""

    def __init__(self, bound: LipschitzBound, sequence: Tensor, lookahead: bool) -> None:
        process = bound.process
        self.bound, self.process, self.lookahead = bound, process, lookahead
        objective = process.objective
        self.sequence = sequence
        changed = bool((sequence != objective.observed).any())
        self.value = float(objective(sequence)) if changed else objective.outcome()
        # Optimal means optimal up to this tolerance, a thousand times the rounding margin of the bounds.
        rewards = objective.rewards(objective.trajectory.states)
        self.tolerance = objective.rounding(1e-9, 1.0 + float(rewards.abs().sum()))
        self._heap: list[tuple[float, int, _Block]] = []
        self._order = count()
        start, observed = process.start, objective.observed.to(torch.int16).unsqueeze(0)
        self.root = float(self._bounded(start, 0, 0))
        self._push(_Block(0, 0, start.new_full((1,), self.root), start, start.new_zeros(1), observed))

    def top(self) -> float:
        """The largest f of an open node; minus infinity if none is open."""
        return -self._heap[0][0] if self._heap else -torch.inf

    def expand(self, size: int) -> None:
        """Expands the best open nodes, at most `size` of them, all of one time and number of changes."""
        block = heapq.heappop(self._heap)[2]
        # All nodes above the incumbent have to be expanded sooner or later; the others are dropped.
        block = block.part(slice(int((block.f > self.value + self.tolerance).sum())))
        self._push(block.part(slice(size, None)))
        block = block.part(slice(size))
        process, time, spent = self.process, block.time, block.spent
        process.effort.expanded += len(block.f)
        if time == process.horizon - 1:
            self._offer_last(block.states, time, spent, block.totals, block.sequences)
            return
        rewards, other = process.rewards(block.states, time), process.others[time]
        kept = block.totals + process.kept(rewards, time)
        self._receive(time + 1, spent, block.f, process.keep(block.states, time), kept, block.sequences)
        if spent < process.changes and len(other):
            states = process.branch(block.states, time).flatten(0, 1)
            totals = (block.totals.unsqueeze(-1) + process.changed(rewards, time)).flatten()
            sequences = block.sequences.repeat_interleave(len(other), 0)
            sequences[:, time] = other.to(sequences).repeat(len(block.f))
            parents = block.f.repeat_interleave(len(other))
            self._receive(time + 1, spent + 1, parents, states, totals, sequences)

    def _receive(
        self, time: int, spent: int, parents: Tensor, states: Tensor, totals: Tensor, sequences: Tensor
    ) -> None:
        """Processes children: leaves are compared with the incumbent, others are bounded and queued."""
        self.process.effort.generated += len(states)
        if self.bound.fixed(time, spent) and time == self.process.horizon - 1:
            self._offer_last(states, time, spent, totals, sequences)
            return
        if self.bound.fixed(time, spent):
            # A rollout costs more than the distances to the anchors: only leaves not ruled out by these are
            # rolled out.
            able = totals + self.bound.interpolated(states, time, [spent])[:, 0] > self.value + self.tolerance
            if able.any():
                self._offer(totals[able] + self.process.to_go(states[able], time), sequences[able], None)
            return
        f = ranked(torch.minimum(parents, totals + self._bounded(states, time, spent)))
        order = f.argsort(descending=True)[: int((f > self.value + self.tolerance).sum())]
        self._push(_Block(time, spent, f[order], states[order], totals[order], sequences[order]))

    def _bounded(self, states: Tensor, time: int, spent: int) -> Tensor:
        return (self.bound.ahead if self.lookahead else self.bound.at)(states, time, [spent])[:, 0]

    def _offer_last(self, states: Tensor, time: int, spent: int, totals: Tensor, sequences: Tensor) -> None:
        """The same for paths on which only the last reward remains."""
        last, action = self.process.final(states, torch.full_like(totals, spent))
        self._offer(totals + last, sequences, action if time < sequences.shape[-1] else None)

    def _offer(self, values: Tensor, sequences: Tensor, last: Tensor | None) -> None:
        """Compares complete sequences with the incumbent and keeps the best."""
        values = ranked(values)
        best = int(values.argmax())
        # Better by more than rounding, so that a change without effect is not taken for an improvement.
        if float(values[best]) > self.value + 1e-3 * self.tolerance:
            self.value, self.sequence = float(values[best]), sequences[best].long()
            if last is not None:
                self.sequence[-1] = last[best]

    def _push(self, block: _Block) -> None:
        if len(block.f):
            heapq.heappush(self._heap, (-float(block.f[0]), next(self._order), block))
