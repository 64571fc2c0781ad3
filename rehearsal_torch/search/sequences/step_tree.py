"""The tree of `branch_and_bound` for rewards that are not linear, and for the closed form: sets of time
steps first, then their actions.

A group is a set of sequences: some changes have been made, on a path rolled out exactly, and the time steps
of the others are known, but not their actions. At the root there is one group for each set of at most k open
time steps. Expanding a group rolls out every action of its next change; each of these paths is a candidate
itself, and a smaller group. Under the closed form, these groups are first bounded as displacements of the old
path, and most of them are not rolled out. Where one change is left, its actions are rolled out to the end.

Groups are taken best bound first, in blocks that share the time of their next change, and dropped if their
bound does not exceed the best return found, at first that of greedy changes. An early end leaves a valid gap:
the largest bound of a group left over, minus the incumbent. Where there are too many sets of time steps, or
no time to bound all of them, that is the bound of any changes.

Bounds. The bound of a group, a path c with the time steps t_1 < ... < t_m of m changes to come, is

    sum of R(c_q, o_q) over q < t_1  +  sum over q >= t_1 of max R(x, a) over the box of step q,

with the box described below (at t_1 it is the path's own state) and, if the reward reads doses, the best
of the allowed actions at the steps t_i. For an ensemble, the mean of the members' bounds. If the worst member
counts, each member has its own bound B^m, and the smallest one holds: for every sequence E of the group and
every member n, min_m R^m(E) <= R^n(E) <= B^n, hence min_m R^m(E) <= min_n B^n. The bound of any k
changes of the observed actions takes at each step the box of all states that k changes can reach; it is
loose, since each step may use another k changes.

Boxes. The displacement of a changed path is enclosed step by step (`mechanisms.displacement`). Under the
closed form the enclosure is of its own (`mechanisms.bent_enclosure`). Else, all maps are expanded once, at
the observed states s_q: with J_a and H_{a,i} the derivatives of F_q(., a) and of its component i there,
|H_{a,i}(x) - H_{a,i}(s_q)| <= N_i |x - s_q| on a ball, and delta = c_q - s_q,

    |F_i(c_q + y, a) - F_i(c_q, a) - (J_a y)_i| <= |y| (|H_{a,i}| (|delta| + |y|/2)
                                                 + N_i (|delta|^2/2 + |delta||y|/2 + |y|^2/6)).

A step maps the centre of an interval by J and its radius by |J|, and adds the right-hand side. Where the
action is not known yet, it adds the hull of d_q(a), and that of J_a - J_o times the interval: almost all of
the width in practice, which vanishes as actions are chosen.

The ball has the radius of the states that any k changes of the observed actions can reach. It is found by the
same recursion forwards in time, with intervals for 0 ... k changes: those of l changes follow from those of l
by keeping the action and from those of l - 1 by changing it.

Rounding: everything is computed in float64, and returns that differ by less than the tolerance of
`branch_and_bound` count as equal. If the curvature has no finite bound, neither have the intervals.

Source: interval arithmetic with a mean-value form: Moore (1966).
"""

import heapq
from dataclasses import dataclass
from itertools import combinations, count
from math import comb

import torch
from torch import Tensor

from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.mechanisms.bent_enclosure import BentEnclosure
from rehearsal_torch.mechanisms.bent_transition import BentTrajectory
from rehearsal_torch.mechanisms.displacement import MARGIN, Enclosure, Intervals, enclosed, nowhere
from rehearsal_torch.mechanisms.mechanism import CurvedTrajectory, spectral_bound
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.baselines import greedy_sequence
from rehearsal_torch.search.sequences.branch_tree import Limits
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess, Effort, limit_reached


@dataclass(frozen=True)
class StepExpansion(Enclosure):
    """The maps of one time step around the observed state, for each of M members."""

    state: Tensor  # The observed state, (M D,)
    jacobian: Tensor  # J of the observed action, (M, D, D)
    turn: tuple[Tensor, Tensor]  # Centre and radius of the hull of J_a - J over allowed actions, (M, D, D)
    bend: tuple[Tensor, Tensor]  # Bounds of |H_i| under the observed, and any allowed action, (M, 1, D)
    third: Tensor  # N, (M, 1, D)
    margin: float  # Allowance for rounding, in the unit of the coordinates

    def kept(self, before: Intervals, here: Tensor, ahead: Tensor) -> Intervals:  # noqa: ARG002
        """Around J."""
        radius = torch.bmm(before.radius, self.jacobian.abs().mT) + self._rest(before, here, self.bend[0])
        return Intervals(torch.bmm(before.centre, self.jacobian.mT), radius)

    def changed(self, before: Intervals, here: Tensor, ahead: Tensor, hull: Intervals) -> Intervals:  # noqa: ARG002
        """Around the hull of J_a."""
        centre, radius = self.turn
        jacobian, sizes = self.jacobian + centre, before.size
        spread = hull.radius + torch.bmm(before.radius, jacobian.abs().mT) + torch.bmm(sizes, radius.mT)
        spread = spread + self._rest(before, here, self.bend[1])
        return Intervals(hull.centre + torch.bmm(before.centre, jacobian.mT), spread)

    def _rest(self, before: Intervals, here: Tensor, bend: Tensor) -> Tensor:
        delta = (here - self.state).unflatten(-1, (len(self.jacobian), -1)).transpose(0, 1)
        distance = torch.linalg.vector_norm(delta, dim=-1, keepdim=True)
        size = torch.linalg.vector_norm(before.size, dim=-1, keepdim=True)
        slope = bend * (distance + 0.5 * size)
        cubic = self.third * (0.5 * distance.square() + 0.5 * distance * size + size.square() / 6)
        return torch.addcmul(size.new_tensor(self.margin), size, slope + cubic)


def expansions(
    trajectory: CurvedTrajectory | BentTrajectory,
    members: int,
    choices: Tensor,
    changes: int,
    hulls: list[Intervals],
    gradient: Tensor | None = None,
) -> tuple[list[Enclosure], list[Intervals]]:
    """The expansion of each of the T - 1 steps, valid for all paths with at most k changes, and the boxes of
    all their states around the T observed ones, with n = 1. M members' states are side by side; `choices` are
    the actions allowed at each step, (>= T - 1, A), and `hulls` the intervals of d(a) around the observed
    path, with n = 1; `gradient` is that of a linear reward under the closed form.
    """
    states = trajectory.states
    width = states.shape[-1] // members
    reach, steps, boxes = nowhere(members, changes + 1, width, states), [], []
    for time in range(trajectory.horizon - 1):
        boxes.append(_hull(reach))
        size = torch.linalg.vector_norm(reach.size, dim=-1).amax().nan_to_num(torch.inf)
        if isinstance(trajectory, BentTrajectory):
            step: Enclosure = BentEnclosure(trajectory, time, choices[time], gradient)
        else:
            step = _expand_step(trajectory, members, time, choices[time], size)
        steps.append(step)
        state, next_state = states[time : time + 1], states[time + 1 : time + 2]
        kept = step.kept(reach, state, next_state)
        if changes and bool(choices[time].any()):
            fewer_changes = Intervals(reach.centre[:, :-1], reach.radius[:, :-1])
            moved = step.changed(fewer_changes, state, next_state, hulls[time])
            lower = torch.minimum(kept.centre - kept.radius, _shift(moved.centre - moved.radius, torch.inf))
            upper = torch.maximum(kept.centre + kept.radius, _shift(moved.centre + moved.radius, -torch.inf))
            kept = Intervals((lower + upper) / 2, (upper - lower) / 2)
        reach = kept
    return steps, [*boxes, _hull(reach)]


def _hull(intervals: Intervals) -> Intervals:
    """The smallest box around all paths, (M, n, D) -> (M, 1, D)."""
    lower = (intervals.centre - intervals.radius).amin(1, keepdim=True)
    upper = (intervals.centre + intervals.radius).amax(1, keepdim=True)
    return Intervals((lower + upper) / 2, (upper - lower) / 2)


def _shift(ends: Tensor, first: float) -> Tensor:
    """The ends of one change more, (M, k, D) -> (M, k + 1, D)."""
    return torch.nn.functional.pad(ends, (0, 0, 1, 0), value=first)


def _expand_step(
    trajectory: CurvedTrajectory, members: int, time: int, allowed: Tensor, size: Tensor
) -> StepExpansion:
    state = trajectory.states[time : time + 1]
    width, observed = state.shape[-1] // members, int(trajectory.observed[time])
    candidates = allowed.clone()
    candidates[observed] = True
    axes = torch.eye(width, dtype=state.dtype, device=state.device).repeat(1, members)
    curvature = trajectory.curvature(state.expand(width, -1), time, axes, size.expand(width))
    jacobians = _diagonal_blocks(curvature.jacobian[0], members)
    jacobian = jacobians[:, observed]
    lower, upper = (jacobians[:, candidates] - jacobian.unsqueeze(1)).aminmax(dim=1)
    # |H_i| of each component i: the covectors are the coordinate axes.
    bends = spectral_bound(_diagonal_blocks(curvature.hessian, members)).transpose(1, 2)
    certified = curvature.second_derivative_norm[:, candidates].isfinite().all()
    third = curvature.hessian_lipschitz[:, candidates].amax(-1).masked_fill(~certified, torch.inf)
    return StepExpansion(
        state[0],
        jacobian,
        ((lower + upper) / 2, (upper - lower) / 2),
        (bends[:, observed].unsqueeze(1), bends[:, candidates].amax(1, keepdim=True)),
        third.expand(members, 1, -1),
        MARGIN * (1 + float(state.abs().max()) + float(size)),
    )


def _diagonal_blocks(matrices: Tensor, members: int) -> Tensor:
    """The diagonal blocks, (..., M D, M D) -> (M, ..., D, D)."""
    width = matrices.shape[-1] // members
    spans = [slice(member * width, (member + 1) * width) for member in range(members)]
    return torch.stack([matrices[..., span, span] for span in spans])


PATHS = 128  # Paths stepped at once under all actions, a compromise between kinds of mechanisms
BOXES = 1024  # Groups bounded at once


@dataclass
class Paths:
    """n paths from one time step on, rolled out under the observed actions."""

    start: int  # The first time step of the tables
    states: Tensor  # (n, T - start, M D)
    before: Tensor  # Rewards of the steps from `start` on before each, cumulated, (n, T - start + 1, *lanes)
    hulls: list[tuple[Tensor, Tensor] | None]  # Smallest and largest effects of allowed changes, (n, M D)


class GroupBounds:
    """Bounds for one episode, whose reward must be bounded over boxes, with at most k changes."""

    def __init__(
        self,
        objective: CounterfactualReturn,
        trajectory: CurvedTrajectory | BentTrajectory,
        process: CounterfactualProcess,
        changes: int,
    ) -> None:
        self.objective, self.trajectory, self.process = objective, trajectory, process
        self.members = objective.surrogate.members
        self.observed = self.roll(trajectory.states[:1], 0)
        zero = nowhere(self.members, 1, trajectory.states.shape[-1] // self.members, trajectory.states)
        hulls = [zero if hull is None else enclosed(*hull, self.members) for hull in self.observed.hulls[:-1]]
        # Of a reward that is linear in the coordinates of the closed form; others are bounded step by step.
        gradient = objective.gradient() if isinstance(trajectory, BentTrajectory) else None
        self.gradient = gradient if gradient is not None and bool(gradient.isfinite().all()) else None
        self.steps, self.boxes = expansions(
            trajectory, self.members, objective.choices, changes, hulls, self.gradient
        )

    def roll(self, states: Tensor, start: int) -> Paths:
        """Paths under the observed actions from a time step on, with the effects of every change."""
        table, rewards = [states], []
        hulls: list[tuple[Tensor, Tensor] | None] = []
        for time in range(start, self.objective.horizon):
            rewards.append(self.process.kept(self.process.rewards(states, time), time))
            if time == self.objective.horizon - 1:
                hulls.append(None)
                break
            states, hull = self._advance(states, time)
            table.append(states)
            hulls.append(hull)
        stacked, gained = torch.stack(table, 1), torch.stack(rewards, 1).cumsum(1)
        return Paths(start, stacked, torch.cat([torch.zeros_like(gained[:, :1]), gained], 1), hulls)

    def _advance(self, states: Tensor, time: int) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """The next states under the observed action, and the hull of the effects of the allowed changes."""
        if not len(self.process.others[time]):
            return self.process.keep(states, time), None
        actions = torch.cat([self.trajectory.observed[time : time + 1], self.process.others[time]])
        self.process.effort.network_evaluations += len(states) * len(actions)
        parts = []
        for batch in states.split(PATHS):
            branches = self.trajectory.branch(batch, time, actions)
            kept = branches[:, 0]
            lower, upper = branches[:, 1:].aminmax(dim=1)
            parts.append((kept, lower - kept, upper - kept))
        kept, lower, upper = (torch.cat(column) for column in zip(*parts, strict=True))
        return kept, (lower, upper)

    def of(self, paths: Paths, rows: Tensor, times: Tensor, moved: Tensor | None = None) -> Tensor:
        """Upper bounds on the rewards of groups from the start of the paths on, (n, *lanes): their paths,
        (n,) long, and steps that change, (n, m) long, ascending; maybe from states moved by (n, M D).
        """
        order = times[:, 0].argsort(stable=True)
        parts = [(batch, None if moved is None else moved[batch]) for batch in order.split(BOXES)]
        ordered = [self._bounds_in_order(paths, rows[batch], times[batch], offset) for batch, offset in parts]
        bounds = paths.before.new_zeros((len(rows), *self.objective.lanes))
        bounds[order] = torch.cat(ordered)
        return bounds

    def _bounds_in_order(self, paths: Paths, rows: Tensor, times: Tensor, moved: Tensor | None) -> Tensor:
        """The bounds of groups in the order of their first change, (n,), (n, m) -> (n, *lanes)."""
        first, horizon = times[:, 0], self.objective.horizon
        width = paths.states.shape[-1] // self.members
        boxes = nowhere(self.members, 0, width, paths.states)
        if moved is not None:
            first, boxes = torch.full_like(first, paths.start), enclosed(moved, moved, self.members)
        total = paths.before[rows, first - paths.start]
        counts = torch.bincount(first, minlength=horizon).cumsum(0).tolist()
        for time in range(int(first[0]), horizon):
            active, column = counts[time], time - paths.start
            boxes = boxes.padded(active - boxes.centre.shape[1])
            group_rows = rows[:active]
            states = paths.states[group_rows, column]
            changing = (times[:active] == time).any(1)
            if self.gradient is None:
                total[:active] += self._highest_rewards(states, boxes, changing, time)
            else:
                total[:active] += self.process.rewards(states + boxes.centre[0], time)[..., 0]
            if time == horizon - 1:
                break
            hull = paths.hulls[column]
            step = self.steps[time]
            next_states = paths.states[group_rows, column + 1]
            next_boxes = step.kept(boxes, states, next_states)
            if hull is not None and bool(changing.any()):
                indices = changing.nonzero()[:, 0]
                effects = enclosed(hull[0][group_rows[indices]], hull[1][group_rows[indices]], self.members)
                changed = step.changed(boxes.rows(indices), states[indices], next_states[indices], effects)
                next_boxes.put(indices, changed)
            boxes = next_boxes
        return total if boxes.gained is None else total + boxes.gained[0].abs().sum(-1)

    def _highest_rewards(self, states: Tensor, boxes: Intervals, changing: Tensor, time: int) -> Tensor:
        """Upper bounds on the reward of a step, (n, *lanes)."""
        lower, upper = boxes.ends(states)
        kept = self.trajectory.observed[time : time + 1]
        highest = self.objective.highest_rewards(lower, upper, time, kept)[..., 0]
        if self.process.acts and bool(changing.any()):
            indices = changing.nonzero()[:, 0]
            others = self.process.others[time]
            bounds = self.objective.highest_rewards(lower[indices], upper[indices], time, others)
            highest[indices] = bounds.amax(-1)
        return highest

    def anywhere(self) -> float:
        """Upper bound on the return under any k changes."""
        total = self.trajectory.states.new_zeros(self.objective.lanes)
        for time, box in enumerate(self.boxes):
            lower, upper = box.ends(self.trajectory.states[time : time + 1])
            actions = self.trajectory.observed[time : time + 1]
            if self.process.acts:
                actions = torch.cat([actions, self.process.others[time]])
            total = total + self.objective.highest_rewards(lower, upper, time, actions).amax(-1)[0]
        return float(self.objective.joined(total))


NUMBERS = 4_000_000  # Numbers in the largest tensor of an expansion, which bounds the memory in use
ROOT = 16_384  # Groups of the root between two looks at the clock


@dataclass(frozen=True)
class Groups:
    """Groups whose next change is at the same time step, in the order of descending bounds."""

    time: int  # The time step of the next change
    bounds: Tensor  # Upper bounds of the return, (n,), descending
    later: Tensor  # The time steps of the other open changes, (n, m - 1) long
    path: Tensor  # A number for each path, the same for groups that share it, (n,) long
    states: Tensor  # The state of the path at `time`, (n, M D)
    gathered: Tensor  # The rewards of the path before `time`, (n, *lanes)
    sequences: Tensor  # The path's actions, (n, H) int16

    def part(self, rows: slice) -> "Groups":
        """Some of the groups."""
        tensors = (self.bounds, self.later, self.path, self.states, self.gathered, self.sequences)
        return Groups(self.time, *(tensor[rows] for tensor in tensors))


class StepTree:
    """Open groups, the incumbent, and counters of the work done, for an episode whose displacements can be
    enclosed and whose reward is bounded over boxes; with at most `sets` sets of time steps at the root, and
    `evaluations` single steps or any number (None). The limits `leaves` and `looseness` do not apply.
    """

    def __init__(
        self,
        objective: CounterfactualReturn,
        effort: Effort,
        limits: Limits,
        sets: int,
        evaluations: int | None,
    ) -> None:
        assert isinstance(objective.trajectory, CurvedTrajectory | BentTrajectory)
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
        self._push_root()
        self.root = self.bound
        while self._heap and -self._heap[0][0] > self.best + self.tolerance:
            if reason := limit_reached(self.limits.nodes, self.effort, self.limits.budget):
                return reason
            if self.evaluations is not None and self.effort.network_evaluations >= self.evaluations:
                return f"stopped after evaluations={self.evaluations} single steps of the model"
            self._expand(heapq.heappop(self._heap)[-1])
        return self._left_out if self.gap() else ""

    def _push_root(self) -> None:
        """The groups of the root, one for each set of time steps."""
        path = self.bounds.observed
        sets = sum(comb(len(self.open), size) for size in range(1, self.changes + 1))
        if sets > self.sets:
            self._given_up = self.bounds.anywhere()
            self._left_out = f"its {sets:,} sets of time steps are more than sets={self.sets:,}"
            return
        for size in range(1, self.changes + 1):
            times = torch.tensor(list(combinations(self.open, size)), device=self.device)
            for batch in times.split(ROOT):
                if self.limits.budget.out():
                    self._given_up = self.bounds.anywhere()
                    self._left_out = self.limits.budget.reason()
                    return
                rows = torch.zeros(len(batch), dtype=torch.long, device=self.device)
                self._admit(path, rows, batch, path.before[:, 0], self.objective.observed.unsqueeze(0))

    def _expand(self, groups: Groups) -> None:
        """Rolls out the actions of the next change of a block of groups; pushes the others back."""
        size = int((groups.bounds > self.best + self.tolerance).sum())
        width = groups.states.shape[-1]
        others = self.process.others[groups.time]
        last = groups.later.shape[1] == 0
        steps = 1 if last else self.objective.horizon - groups.time
        largest = max(1, NUMBERS // (len(others) * width * steps))
        if size > largest:
            self._push(groups.part(slice(largest, size)))
            size = largest
        self.effort.expanded += size
        path, group = groups.path[:size].unique(return_inverse=True)
        row = torch.arange(size, device=self.device)
        first = torch.full_like(path, size).scatter_reduce_(0, group, row, "amin")
        states, sequences = groups.states[first], groups.sequences[first]
        rewards = self.process.rewards(states, groups.time)
        gathered = groups.gathered[first].unsqueeze(1) + self.process.changed(rewards, groups.time)
        self.effort.generated += gathered.shape[0] * gathered.shape[1]
        if groups.time == self.objective.horizon - 1:
            self._offer(self.objective.joined(gathered), sequences, groups.time, others)
            return
        parents, states = states, self.process.branch(states, groups.time).flatten(0, 1)
        if last:
            rewards_to_go = self.process.to_go(states, groups.time + 1)
            values = self.objective.joined(gathered + rewards_to_go.view_as(gathered))
            self._offer(values, sequences, groups.time, others)
            self.rolled_out += len(rewards_to_go)
            return
        lane = torch.arange(len(others), device=self.device)
        rows = (group.unsqueeze(1) * len(others) + lane).flatten()
        later, gathered = groups.later[:size].repeat_interleave(len(others), 0), gathered.flatten(0, 1)
        if isinstance(self.bounds.trajectory, BentTrajectory):
            kept = self.process.keep(parents, groups.time)
            moved = (states.unflatten(0, (len(kept), -1)) - kept.unsqueeze(1)).flatten(0, 1)[rows]
            upper = self.bounds.of(self.bounds.roll(kept, groups.time + 1), rows // len(others), later, moved)
            promising = self.objective.joined(upper + gathered[rows]) > self.best + self.tolerance
            rows, later = rows[promising], later[promising]
            if not len(rows):
                return
        child, rows = rows.unique(return_inverse=True)
        gathered, action, parent = gathered[child], others[child % len(others)], child // len(others)
        child_paths = self.bounds.roll(states[child], groups.time + 1)
        sequences = sequences[parent]
        sequences[:, groups.time] = action
        self._offer(self.objective.joined(gathered + child_paths.before[:, -1]).unsqueeze(1), sequences)
        self._admit(child_paths, rows, later, gathered, sequences)

    def _admit(self, paths: Paths, rows: Tensor, times: Tensor, gathered: Tensor, sequences: Tensor) -> None:
        """Bounds groups, and pushes those that may be better."""
        bounds = self.objective.joined(self.bounds.of(paths, rows, times) + gathered[rows])
        promising = bounds > self.best + self.tolerance
        bounds, rows, times = bounds[promising], rows[promising], times[promising]
        for time in times[:, 0].unique().tolist():
            indices = (times[:, 0] == time).nonzero()[:, 0]
            indices = indices[bounds[indices].argsort(descending=True)]
            path, column = rows[indices], time - paths.start
            before, actions = gathered[path] + paths.before[path, column], sequences[path].to(torch.int16)
            states, later = paths.states[path, column], times[indices, 1:]
            self._push(Groups(time, bounds[indices], later, path, states, before, actions))
        self._prune()

    def _push(self, groups: Groups) -> None:
        rank = -float(groups.bounds[0]), groups.later.shape[1], next(self._ties)
        heapq.heappush(self._heap, (*rank, groups))

    def _prune(self) -> None:
        """Drops the groups with the lowest bounds beyond the size of the pool."""
        if sum(len(groups.bounds) for *_, groups in self._heap) <= self.limits.pool:
            return
        bounds = torch.cat([groups.bounds for *_, groups in self._heap])
        limit = float(bounds.topk(self.limits.pool + 1).values[-1])
        # All groups with the first bound that does not fit are dropped.
        self._given_up = max(self._given_up, limit)
        self._left_out = f"gave up nodes beyond pool={self.limits.pool}"
        heap, self._heap = self._heap, []
        for *_, groups in heap:
            count = int((groups.bounds > limit).sum())
            if count:
                self._push(groups.part(slice(0, count)))

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
