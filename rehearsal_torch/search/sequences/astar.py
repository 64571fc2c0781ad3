"""A* search over counterfactual action sequences.

Given a node v = (x, l, t) reached with reward r, let f(v) = r + h(v), where h is an upper bound on the
remaining reward. A* expands the open node with the largest f; once no open node's f exceeds the best complete
sequence, that sequence is optimal. With the bounds below, h is consistent, and f never rises along a path.

As published, the anchors of all time steps are pooled, h looks one step ahead (Eq. 11), and every path is
followed to its end node by node. The defaults of `AStar` reach the same answer with less work: a node whose
remaining path is fixed is a leaf, evaluated by one rollout; others are bounded from anchors at their time.

Bounds. Given constants K_t of the counterfactual maps and C of the reward, the value V(x, l, t), the largest
reward from time t on with l changes made, is Lipschitz in x with constant

    L_{T-1} = C,    L_t = C + K_t L_{t+1}.

Upper bounds W at anchor states y therefore bound the value of every other state,

    V(x, l, t) <= min over anchors y of  W(y, l, t) + L_t |x - y|,

and the recursion of V, with these bounds in place of the values one step ahead, gives W at the anchors from
the last time step to the first.

The bounds hold in floating point: float64, distances by differences (matrix products may come out too short),
and a margin above the rounding error of states and rewards.

An anchor set holds states near those that the search is likely to visit. Two strategies draw them:

- MC-Lipschitz: the observed states, and the states of random sequences that change k' ~ U{1 ... k} time
  steps, drawn without replacement with probability L_t / sum L, to actions drawn from all A (so that one may
  equal the observed action);
- MC-Uniform: the same with all open time steps equally likely.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 4 and Algorithm 2 (App. E); Lemma 5, Algorithm 1, Prop. 6,
Eq. 11 and Thm. 7 (bounds); App. F, Eq. 18 (anchors).
"""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, final

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import Reward
from rehearsal_torch.search.search import UNLIMITED, Budget, Search
from rehearsal_torch.search.sequences.baselines import greedy_sequence, nothing_open
from rehearsal_torch.search.sequences.decision_process import (
    CounterfactualProcess,
    Effort,
    limit_reached,
    sequence_decision,
)
from rehearsal_torch.seeding import stream
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate

WEIGHTS = ("lipschitz", "uniform")


class Anchors(ABC):
    """A strategy for choosing the anchor states of an episode."""

    @abstractmethod
    def __call__(self, process: CounterfactualProcess, lipschitz: Tensor) -> list[Tensor]:
        """Anchor states of each time step, T tensors (n_t >= 1, D), given the constants L_t, (T,)."""


@final
class MonteCarlo(Anchors):
    """The observed states and those of random sequences.

    Args:
        samples: M, number of sequences drawn; None if `size` is given.
        size: Draw until the set, over all time steps, has at least this many states (or no new ones appear).
        weights: "lipschitz" (MC-Lipschitz) or "uniform" (MC-Uniform).
        seed: Together with the identity of the episode, determines the draws.
    """

    def __init__(
        self, samples: int | None = 100, size: int | None = None, weights: str = "lipschitz", seed: int = 0
    ) -> None:
        if (samples is None) == (size is None) or (samples or size or 0) < 1:
            raise ValueError(
                "expected either samples or size, at least 1, and null for the other; got "
                f"samples={samples}, size={size}"
            )
        if weights not in WEIGHTS:
            raise ValueError(f"expected weights of {' or '.join(WEIGHTS)}; got {weights!r}")
        self.samples, self.size, self.weights, self.seed = samples, size, weights, seed

    def __call__(self, process: CounterfactualProcess, lipschitz: Tensor) -> list[Tensor]:
        """T tensors (n_t, D); the first row is the observed state."""
        generator = stream(self.seed, process.objective.case.identity)
        if self.samples is not None:
            sequences = self._draw(process, lipschitz, self.samples, generator)
        else:
            sequences = self._draw_until_size(process, lipschitz, generator)
        states = process.objective.replay(sequences)
        process.effort.network_evaluations += len(sequences) * (process.horizon - 1)
        distinct = [states[first, time] for time, first in enumerate(_prefixes(sequences, process.horizon))]
        # The observed sequence comes first; its states are taken as observed rather than replayed.
        pairs = zip(process.trajectory.states.split(1), distinct, strict=True)
        return [torch.cat([observed, sampled[1:]]) for observed, sampled in pairs]

    def _draw(
        self, process: CounterfactualProcess, lipschitz: Tensor, count: int, generator: torch.Generator
    ) -> Tensor:
        """The observed sequence, then `count` random ones, (count + 1, H) long."""
        objective, observed = process.objective, process.objective.observed.cpu()
        steps = objective.open
        weights = torch.ones(len(steps), dtype=torch.float64)
        if self.weights == "lipschitz":
            weights = lipschitz[steps.to(lipschitz.device)].cpu()
        order = steps[torch.multinomial(weights.expand(count, -1), len(steps), generator=generator)]
        # The first k' of a weighted permutation are a weighted draw of k' without replacement.
        changes = torch.randint(1, min(objective.changes, len(steps)) + 1, (count, 1), generator=generator)
        mask = torch.zeros(count, len(observed), dtype=torch.bool)
        mask.scatter_(1, order, torch.arange(len(steps)) < changes)
        others = torch.randint(objective.actions, mask.shape, generator=generator)
        return torch.cat([observed.unsqueeze(0), torch.where(mask, others, observed)]).to(objective.observed)

    def _draw_until_size(
        self, process: CounterfactualProcess, lipschitz: Tensor, generator: torch.Generator
    ) -> Tensor:
        """The fewest of the drawn sequences that yield `size` states."""
        sequences, block = process.objective.observed.unsqueeze(0), 64
        while True:
            firsts = torch.cat(_prefixes(sequences, process.horizon))
            states = firsts.bincount(minlength=len(sequences)).cumsum(0)
            sufficient = (states >= (self.size or 1)).nonzero()
            if len(sufficient):
                return sequences[: int(sufficient[0, 0]) + 1]
            if len(sequences) > block and int(states[-1]) == int(states[len(sequences) // 2]):
                return sequences
            batch = self._draw(process, lipschitz, max(block, len(sequences)), generator)
            sequences = torch.cat([sequences, batch[1:]])


def _prefixes(sequences: Tensor, horizon: int) -> list[Tensor]:
    """For each time step, the index of the first sequence of each distinct prefix, (n_t,) long, ascending."""
    group = torch.zeros(len(sequences), dtype=torch.long, device=sequences.device)
    rows, firsts = torch.arange(len(sequences), device=sequences.device), []
    for time in range(horizon):
        if time:
            code = group * (int(sequences.max()) + 1) + sequences[:, time - 1]
            group = torch.unique(code, return_inverse=True)[1]
        none = torch.full((int(group.max()) + 1,), len(sequences), device=group.device)
        firsts.append(none.scatter_reduce(0, group, rows, "amin").sort().values)
    return firsts


ENTRIES = 1 << 16  # distances held at once: few enough to stay in the processor's cache


NO_SUM = (
    "expected a return that is a sum over time steps; the worst member's is none, so that the bounds of "
    "astar do not hold for objective.members=worst: use branch_and_bound, greedy_changes or exhaustive, or "
    "objective.members=mean"
)


class UnboundedError(ValueError):
    """No finite Lipschitz constant is known, so that there is no Lipschitz bound."""


def value_constants(objective: CounterfactualReturn) -> Tensor:
    """The Lipschitz constants L_t of the value, (T,) float64; an `UnboundedError` if there are none."""
    if objective.worst:
        raise UnboundedError(NO_SUM)
    constants = objective.trajectory.lipschitz()
    if constants is None or not bool(torch.isfinite(constants).all()) or not objective.constant < torch.inf:
        missing = (
            "reward has no finite Lipschitz constant in these coordinates"
            if constants is not None
            else "transition has no Lipschitz constant"
        )
        raise UnboundedError(
            f"expected Lipschitz constants of the transition and the reward; the {missing}: use "
            "greedy_changes, or exhaustive if the search tree is small enough"
        )
    lipschitz = [objective.constant]
    for constant in constants.tolist()[::-1]:
        lipschitz.append(objective.constant + constant * lipschitz[-1])
    return torch.tensor(lipschitz[::-1], dtype=torch.float64, device=objective.trajectory.states.device)


class LipschitzBound:
    """Upper bounds W at anchors, T tensors (n_t, D), extended to all states.

    Args:
        exact: Use exact values where the remaining path is fixed (the paper has anchors throughout).
        budget: Once it is spent, only the first anchor of each remaining time step is bounded.
    """

    def __init__(
        self,
        process: CounterfactualProcess,
        anchors: Sequence[Tensor],
        lipschitz: Tensor,
        exact: bool = True,
        budget: Budget = UNLIMITED,
    ) -> None:
        self.process, self.exact, self.lipschitz = process, exact, lipschitz
        objective = process.objective
        scale = float(objective.rewards(objective.trajectory.states).abs().sum()) + float(lipschitz[0])
        self.margin = objective.rounding(1e-12, 1.0 + scale)
        # An anchor at which the model has no finite state gives no bound.
        self.anchors, self.distances = [states[states.isfinite().all(-1)] for states in anchors], 0
        T, counts = process.horizon, list(range(process.changes + 1))
        self.values = [torch.empty(0)] * T
        self.values[-1] = _as_upper_bounds(self._last(self.anchors[-1], counts))
        for time in range(T - 2, -1, -1):
            if budget.out():
                self.anchors[time] = self.anchors[time][:1]
            self.values[time] = _as_upper_bounds(self.ahead(self.anchors[time], time, counts))

    def fixed(self, time: int, spent: int) -> bool:
        """Whether `at` is exact there: the remaining path is fixed, or only the last reward remains."""
        process = self.process
        return self.exact and (spent >= process.changes or time > process.last or time == process.horizon - 1)

    def at(self, states: Tensor, time: int, spent: Sequence[int]) -> Tensor:
        """Upper bounds on V(x, l, t) for several l, (n, D), t, (m,) -> (n, m); all l share the distances."""
        process = self.process
        bounds = states.new_empty(len(states), len(spent))
        columns = [column for column, changes in enumerate(spent) if not self.fixed(time, changes)]
        if len(columns) < len(spent):
            last = time == process.horizon - 1
            bounds[:] = self._last(states, spent) if last else process.to_go(states, time).unsqueeze(-1)
        if columns:
            bounds[:, columns] = self.interpolated(states, time, [spent[column] for column in columns])
        return bounds

    def ahead(self, states: Tensor, time: int, spent: Sequence[int]) -> Tensor:
        """Upper bounds on V by one-step lookahead (Eq. 11), max over a of R + bound(F_t(x, a)), (n, m)."""
        process = self.process
        if time == process.horizon - 1:
            return self._last(states, spent)
        rewards, others = process.rewards(states, time), process.others[time]
        kept = self.at(process.keep(states, time), time + 1, spent)
        best = process.kept(rewards, time).unsqueeze(-1) + kept
        changeable = [column for column, changes in enumerate(spent) if changes < process.changes]
        if changeable and len(others):
            children = process.branch(states, time).flatten(0, 1)
            increments = [spent[column] + 1 for column in changeable]
            bounds = self.at(children, time + 1, increments).unflatten(0, (len(states), len(others)))
            changed = process.changed(rewards, time).unsqueeze(-1) + bounds
            best[:, changeable] = torch.maximum(best[:, changeable], changed.amax(1))
        return best

    def _last(self, states: Tensor, spent: Sequence[int]) -> Tensor:
        """V at time T - 1, (n, D), (m,) -> (n, m)."""
        process, counts = self.process, [states.new_full((len(states),), changes) for changes in spent]
        return torch.stack([process.final(states, changes)[0] for changes in counts], -1)

    def interpolated(self, states: Tensor, time: int, spent: Sequence[int]) -> Tensor:
        """Upper bounds on V(x, l, t) from the anchors at time t only, (n, D), t, (m,) -> (n, m)."""
        anchors, values = self.anchors[time], self.values[time]
        slope = float(self.lipschitz[time]) * (1 + 1e-12)
        bounds = states.new_empty(len(states), len(spent))
        self.distances += len(states) * len(anchors)
        rows = max(1, ENTRIES // len(anchors))
        for start in range(0, len(states), rows):
            part = states[start : start + rows]
            distances = torch.cdist(part, anchors, compute_mode="donot_use_mm_for_euclid_dist").mul_(slope)
            for column, changes in enumerate(spent):
                torch.amin(distances + values[:, changes], 1, out=bounds[start : start + rows, column])
        return bounds.add_(self.margin)


def _as_upper_bounds(values: Tensor) -> Tensor:
    """Values of anchors as upper bounds; undefined ones become infinite."""
    return values.where(~values.isnan(), torch.inf)


@final
@dataclass(eq=False)
class AStar(Search[CounterfactualReturn]):
    """Optimal sequences by A* with Lipschitz bounds at anchors.

    Args:
        anchors: Strategy for the choice of anchor states; None for 100 Monte Carlo sequences.
        pooled: Use the anchors of all time steps at every step (as published) instead of its own anchors.
        exact: Use exact values where the remaining path is fixed, instead of bounds (as published).
        lookahead: Bound each child by Eq. 11 (as published) instead of by the anchors at its own time.
        batch: Maximum number of nodes expanded at once; 1 is strictly best first (as published).
        incumbent: Start from the greedy sequence instead of the observed one (as published).
        budget_s: See `Search`; steps are rounds of the greedy ascent, anchors, and batches of nodes.
        node_limit: Likewise, a limit on the number of expanded nodes.
    """

    anchors: Anchors | None = None
    pooled: bool = False
    exact: bool = True
    lookahead: bool = False
    batch: int = 256
    incumbent: bool = True
    budget_s: float | None = None
    node_limit: int | None = None

    def __post_init__(self) -> None:
        self.check_sizes("batch", expected="a batch of at least 1 node")

    def check(self, surrogate: Surrogate, **settings: Any) -> None:
        """An `UnboundedError` for an ensemble's worst member, and without Lipschitz constants."""
        members = surrogate.members if isinstance(surrogate, EpisodeSurrogate) else 1
        if settings.get("members") == "worst" and members > 1:
            raise UnboundedError(NO_SUM)
        if isinstance(surrogate, EpisodeSurrogate) and not surrogate.has_constants:
            raise UnboundedError(
                f"expected a transition with Lipschitz constants; a {type(surrogate).__name__} has none: use "
                "branch_and_bound or greedy_changes, or surrogate=transition_published"
            )
        reward = settings.get("reward")
        if isinstance(reward, Reward) and isinstance(surrogate, EpisodeSurrogate):
            names = surrogate.names
            if not math.isfinite(reward.lipschitz(names, torch.ones(len(names), dtype=torch.float64))):
                raise UnboundedError(
                    "expected a reward with a Lipschitz constant, such as weights of states; this one jumps, "
                    "as scores with limits do: use branch_and_bound or greedy_changes"
                )

    def __call__(self, objective: CounterfactualReturn) -> Decision:
        """Returns the optimal sequence, or the best found with its gap; see `improve`."""
        return self.improve(objective, objective.observed)

    @torch.no_grad()
    def improve(self, objective: CounterfactualReturn, known: Tensor) -> Decision:
        """Searches from a known sequence, (H,) long: the answer is at least as good, and fewer nodes are
        expanded. An `UnboundedError` without finite Lipschitz constants; more than k changes, a ValueError.
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
        anchors = (self.anchors or MonteCarlo())(process, lipschitz)
        if self.pooled:
            anchors = [torch.unique(torch.cat(anchors), dim=0)] * process.horizon
        else:
            observed_states = process.trajectory.states.split(1)
            anchors = [torch.cat(pair) for pair in zip(observed_states, anchors, strict=True)]
        bound = LipschitzBound(process, anchors, lipschitz, self.exact, budget)
        frontier = _Frontier(bound, start, self.lookahead)
        stopped = self._run(frontier, effort, budget)
        gap = 0.0 if not stopped else frontier.top() - frontier.value
        size = len(anchors[0]) if self.pooled else sum(len(states) for states in anchors)
        ends: dict[str, Any] = {"gap": gap, "equal": frontier.tolerance, "reason": stopped}
        work: dict[str, Any] = {"anchors": size, "distances": bound.distances, "root_bound": frontier.root}
        return sequence_decision(objective, frontier.sequence, effort, budget, search="astar", **ends, **work)

    def _run(self, frontier: "_Frontier", effort: Effort, budget: Budget) -> str:
        """Expands until no open node can be better; returns "", or which limit ended the search."""
        while frontier.top() > frontier.value + frontier.tolerance:
            if reason := limit_reached(self.node_limit, effort, budget):
                return reason
            room = self.batch if self.node_limit is None else self.node_limit - effort.expanded
            frontier.expand(min(self.batch, room))
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
        tensors = (self.f, self.states, self.totals, self.sequences)
        return _Block(self.time, self.spent, *(tensor[rows] for tensor in tensors))


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
        self.root = float(self._bound_of(start, 0, 0))
        self._push(_Block(0, 0, start.new_full((1,), self.root), start, start.new_zeros(1), observed))

    def top(self) -> float:
        """The largest f of an open node; minus infinity if none is open."""
        return -self._heap[0][0] if self._heap else -torch.inf

    def expand(self, size: int) -> None:
        """Expands the best open nodes, at most `size` of them, all of one time and number of changes."""
        block = heapq.heappop(self._heap)[2]
        # Nodes that are not above the incumbent are dropped.
        block = block.part(slice(int((block.f > self.value + self.tolerance).sum())))
        self._push(block.part(slice(size, None)))
        block = block.part(slice(size))
        process, time, spent = self.process, block.time, block.spent
        process.effort.expanded += len(block.f)
        if time == process.horizon - 1:
            self._offer_last(block.states, time, spent, block.totals, block.sequences)
            return
        rewards, others = process.rewards(block.states, time), process.others[time]
        total = block.totals + process.kept(rewards, time)
        self._receive(time + 1, spent, block.f, process.keep(block.states, time), total, block.sequences)
        if spent < process.changes and len(others):
            states = process.branch(block.states, time).flatten(0, 1)
            totals = (block.totals.unsqueeze(-1) + process.changed(rewards, time)).flatten()
            sequences = block.sequences.repeat_interleave(len(others), 0)
            sequences[:, time] = others.to(sequences).repeat(len(block.f))
            parents = block.f.repeat_interleave(len(others))
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
            # A rollout costs more than distances to anchors, which rule out most leaves.
            live = totals + self.bound.interpolated(states, time, [spent])[:, 0] > self.value + self.tolerance
            if live.any():
                self._offer(totals[live] + self.process.to_go(states[live], time), sequences[live], None)
            return
        f = ranked(torch.minimum(parents, totals + self._bound_of(states, time, spent)))
        order = f.argsort(descending=True)[: int((f > self.value + self.tolerance).sum())]
        self._push(_Block(time, spent, f[order], states[order], totals[order], sequences[order]))

    def _bound_of(self, states: Tensor, time: int, spent: int) -> Tensor:
        return (self.bound.ahead if self.lookahead else self.bound.at)(states, time, [spent])[:, 0]

    def _offer_last(self, states: Tensor, time: int, spent: int, totals: Tensor, sequences: Tensor) -> None:
        """Compares paths on which only the last reward remains."""
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
