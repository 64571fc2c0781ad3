"""Exhaustive search: every sequence with at most k changes.

Given an episode of T steps, A actions and a limit of k changes, the search tree has

    sum over t < T of sum over l <= k of C(t, l) (A - 1)^l

nodes (fewer if some steps are fixed). Each is evaluated once, in batches: nodes that may still change are
expanded time step by time step in blocks of bounded size; once the last change is made, the remaining path is
one rollout.

Source: brute force is the reference of Tsirtsis and Gomez-Rodriguez (2023), Sec. 4.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import Budget, Search
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort, sequence_decision

# Candidates that the objective evaluates again, since rounding differs between blocks.
FINALISTS = 64


@final
@dataclass(eq=False)
class Exhaustive(Search[CounterfactualReturn]):
    """The best of all sequences.

    Args:
        chunk: Maximum number of nodes expanded at once; memory grows with chunk * A * T.
        node_limit: Maximum size of a tree that is searched at all.
        budget_s: See `Search`; a step is the expansion of a block.
    """

    chunk: int = 2048
    node_limit: int = 100_000_000
    budget_s: float | None = None

    def __post_init__(self) -> None:
        self.check_sizes("chunk", "node_limit", expected="numbers of at least 1")

    @torch.no_grad()
    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns the optimal sequence; a tree of more than `node_limit` nodes raises a ValueError."""
        budget = Budget(self.budget_s)
        layers = tree_size(objective)
        nodes = sum(layers)
        if nodes > self.node_limit:
            raise ValueError(
                f"expected a search tree of at most node_limit={self.node_limit:,} nodes; got {nodes:,} "
                f"(T={objective.horizon}, A={objective.actions}, k={objective.changes}): raise node_limit, "
                "lower the number of changes, or use branch_and_bound or astar"
            )
        effort = Effort()
        process = CounterfactualProcess(objective, effort)
        best = _Finalists(objective.observed)
        finished = self._enumerate(process, best, budget)
        value, sequence = best.evaluated(objective)
        equal = objective.rounding(1e-12, 1 + abs(value))
        if not value > objective.outcome() + equal:  # an improvement within rounding is none
            sequence = objective.observed
        effort.generated = nodes if finished else effort.network_evaluations + 1
        effort.expanded = nodes - layers[-1] if finished else effort.expanded
        reason = "" if finished else f"{budget.reason()}; the sequences not evaluated may be better"
        gap, name = 0.0 if finished else None, "exhaustive"
        return sequence_decision(
            objective, sequence, effort, budget, search=name, gap=gap, equal=equal, reason=reason, nodes=nodes
        )

    def _enumerate(self, process: CounterfactualProcess, best: "_Finalists", budget: Budget) -> bool:
        """Visits every node; returns False if the budget ended the search."""
        start, observed = process.start, best.observed.to(torch.int16).unsqueeze(0)
        joined = process.objective.joined
        best.offer(start.new_full((1, 1), process.objective.outcome()), observed)
        if process.last < 0:
            return True
        zero = start.new_zeros((1, *process.objective.lanes))
        blocks = [(0, start, zero, observed.new_zeros(1), observed)]
        while blocks:
            if budget.out():
                return False
            time, states, totals, spent, sequences = blocks.pop()
            process.effort.expanded += len(states)
            if time == process.horizon - 1:
                value, action = process.ended(states, spent, totals)
                best.offer(value.unsqueeze(-1), sequences, time, action.unsqueeze(-1))
                continue
            if time > process.last:
                best.offer(joined(totals + process.to_go(states, time)).unsqueeze(-1), sequences)
                continue
            rewards = process.rewards(states, time)
            kept_totals = totals + process.kept(rewards, time)
            children_blocks = [(process.keep(states, time), kept_totals, spent, sequences)]
            others = process.others[time]
            if len(others):
                children = process.branch(states, time)
                changed_totals = totals.unsqueeze(1) + process.changed(rewards, time)
                exhausted = spent == process.changes - 1
                leaves, inner = exhausted.nonzero()[:, 0], (~exhausted).nonzero()[:, 0]
                if len(leaves):
                    to_go = process.to_go(children[leaves].flatten(0, 1), time + 1)
                    values = joined(changed_totals[leaves] + to_go.unflatten(0, (len(leaves), len(others))))
                    best.offer(values, sequences[leaves], time, others.expand(len(leaves), -1))
                if len(inner):
                    changed_sequences = sequences[inner].repeat_interleave(len(others), 0)
                    block = children[inner].flatten(0, 1), changed_totals[inner].flatten(0, 1)
                    counts = (spent[inner] + 1).repeat_interleave(len(others))
                    changed_sequences = _with_actions(changed_sequences, time, others.repeat(len(inner)))
                    children_blocks.append((*block, counts, changed_sequences))
            merged = (torch.cat(parts).split(self.chunk) for parts in zip(*children_blocks, strict=True))
            blocks.extend((time + 1, *parts) for parts in zip(*merged, strict=True))
        return True


class _Finalists:
    """The best sequences so far, by their value in the search."""

    def __init__(self, observed: Tensor) -> None:
        self.observed = observed
        self.values: Tensor = torch.empty(0)
        self.sequences: Tensor = observed[:0]

    def offer(
        self, values: Tensor, sequences: Tensor, time: int | None = None, actions: Tensor | None = None
    ) -> None:
        """Adds candidates."""
        flat = ranked(values.flatten())
        if len(self.values) == FINALISTS and flat.max() <= self.values[-1]:
            return
        top = flat.topk(min(FINALISTS, len(flat)))
        rows = sequences[top.indices // values.shape[1]].long()
        if time is not None and actions is not None:
            rows = _with_actions(rows, time, actions.flatten()[top.indices])
        if not len(self.values):
            self.values, self.sequences = top.values, rows
            return
        merged = torch.cat([self.values, top.values])
        order = merged.topk(min(FINALISTS, len(merged))).indices
        self.values, self.sequences = merged[order], torch.cat([self.sequences, rows])[order]

    def evaluated(self, objective: CounterfactualReturn) -> tuple[float, Tensor]:
        """The best of them by the objective itself, with its value."""
        values = ranked(objective(self.sequences))
        winner = int(values.argmax())
        return float(values[winner]), self.sequences[winner]


def tree_size(objective: CounterfactualReturn) -> list[int]:
    """The number of nodes of the search tree at each of the T time steps."""
    counts, layers = [1] + [0] * objective.changes, [1]
    for time in range(objective.horizon - 1):
        options = len(objective.candidate_actions(time))
        counts = [nodes + options * (counts[spent - 1] if spent else 0) for spent, nodes in enumerate(counts)]
        layers.append(sum(counts))
    return layers


def _with_actions(sequences: Tensor, time: int, actions: Tensor) -> Tensor:
    """Sequences with other actions at one time, (n, H), t, (n,) -> (n, H); as they are at t = H."""
    if time == sequences.shape[-1]:
        return sequences
    sequences = sequences.clone()
    sequences[:, time] = actions.to(sequences)
    return sequences
