"""Upper bounds on the return of groups of sequences, by the box that each path can reach.

A group is a path c on which some changes have been made, and the time steps t_1 < ... < t_m of m others,
whose actions are not known. Its bound is

    sum of R(c_q, o_q) over q < t_1  +  sum over q >= t_1 of max R(x, a) over the box of step q,

with the box described below (at t_1 it is the path's own state) and, if the reward reads doses, the best
of the allowed actions at the steps t_i. For an ensemble, the mean of the members' bounds. If the worst member
counts, each member has its own bound B^m, and the smallest one holds: for every sequence E of the group and
every member n, min_m R^m(E) <= R^n(E) <= B^n, hence min_m R^m(E) <= min_n B^n. The bound of any k
changes of the observed actions takes at each step the box of all states that k changes can reach; it is
loose, since each step may use another k changes.

Certified boxes around the states that further changes of a path can reach.

Given a path c_0 ... c_{T-1} under its own actions o, and further changes at later steps, the displacement
y_q = x_q - c_q of the changed path obeys, with o_q kept or replaced by a,

    y_{q+1} = F_q(c_q + y_q, o_q) - F_q(c_q, o_q),
    y_{q+1} = F_q(c_q + y_q, a) - F_q(c_q, a) + d_q(a),    d_q(a) = F_q(c_q, a) - F_q(c_q, o_q).

All maps are expanded once, at the observed states s_q: with J_a and H_{a,i} the derivatives of F_q(., a) and
of its component i there, |H_{a,i}(x) - H_{a,i}(s_q)| <= N_i |x - s_q| on a ball, and delta = c_q - s_q,

    |F_i(c_q + y, a) - F_i(c_q, a) - (J_a y)_i| <= |y| (|H_{a,i}| (|delta| + |y|/2)
                                                 + N_i (|delta|^2/2 + |delta||y|/2 + |y|^2/6)).

The displacement is enclosed in an interval for each variable, with centre and radius. A step maps the centre
by J and the radius by |J|, and adds the right-hand side. Where the action changes to one that is not known
yet, it adds the hull of d_q(a) over the allowed actions, which is exact at the path's own states, and the
hull of J_a - J_o times the interval. Displacements are nearly linear in practice, so that almost all of the
width comes from the hull, and vanishes as actions are chosen.

The ball has the radius of the states that any k changes of the observed actions can reach. It is found by the
same recursion forwards in time, with intervals for 0 ... k changes: those of l changes follow from those of l
by keeping the action and from those of l - 1 by changing it.

Rounding: every step widens intervals by 1e-12 times the size of the states, far more than float64 loses. If
the curvature has no finite bound, neither have the intervals.

Source: ours (interval arithmetic with a mean-value form: Moore, 1966).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.mechanism import CurvedTrajectory, spectral_bound
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess

MARGIN = 1e-12


@dataclass(frozen=True)
class Intervals:
    """Displacements of n paths for each of M members, (M, n, D) each."""

    centre: Tensor
    radius: Tensor

    @property
    def size(self) -> Tensor:
        """The largest displacement of each variable, (M, n, D)."""
        return self.centre.abs() + self.radius

    def rows(self, rows: Tensor) -> "Intervals":
        """Those of some paths."""
        return Intervals(self.centre[:, rows], self.radius[:, rows])

    def ends(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The lower and upper ends around states (n, M D), (n, M D) each."""
        centre, radius = (part.transpose(0, 1).flatten(1) for part in (self.centre, self.radius))
        return states + (centre - radius), states + (centre + radius)


def nowhere(members: int, rows: int, width: int, like: Tensor) -> Intervals:
    """No displacement."""
    zero = like.new_zeros(members, rows, width)
    return Intervals(zero, zero)


def enclosed(lower: Tensor, upper: Tensor, members: int) -> Intervals:
    """Intervals between given ends, (n, M D) each."""
    ends = [end.unflatten(-1, (members, -1)).transpose(0, 1) for end in (lower, upper)]
    return Intervals((ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2)


@dataclass(frozen=True)
class StepExpansion:
    """The maps of one time step around the observed state, for each of M members.

    Attributes:
        jacobian: J of the observed action, (M, D, D).
        turn: Centre and radius of the hull of J_a - J over the allowed actions, (M, D, D) each.
        bend: Upper bounds of |H_i| under the observed action, and under any allowed one, (M, 1, D) each.
        third: N, (M, 1, D).
        margin: Allowance for rounding, in the unit of the coordinates.
    """

    jacobian: Tensor
    turn: tuple[Tensor, Tensor]
    bend: tuple[Tensor, Tensor]
    third: Tensor
    margin: float

    def kept(self, before: Intervals, away: Tensor) -> Intervals:
        """The intervals of the next step under the observed action; `away` is |delta|, (M, n, 1)."""
        radius = torch.bmm(before.radius, self.jacobian.abs().mT) + self._rest(before, away, self.bend[0])
        return Intervals(torch.bmm(before.centre, self.jacobian.mT), radius)

    def changed(self, before: Intervals, away: Tensor, hull: Intervals) -> Intervals:
        """The intervals of the next step under any allowed action, whose effects d lie in `hull`."""
        centre, radius = self.turn
        kept, size = self.jacobian + centre, before.size
        return Intervals(
            hull.centre + torch.bmm(before.centre, kept.mT),
            hull.radius
            + torch.bmm(before.radius, kept.abs().mT)
            + torch.bmm(size, radius.mT)
            + self._rest(before, away, self.bend[1]),
        )

    def _rest(self, before: Intervals, away: Tensor, bend: Tensor) -> Tensor:
        size = torch.linalg.vector_norm(before.size, dim=-1, keepdim=True)
        slope = bend * (away + 0.5 * size)
        cubic = self.third * (0.5 * away.square() + 0.5 * away * size + size.square() / 6)
        return torch.addcmul(size.new_tensor(self.margin), size, slope + cubic)


def expansions(
    trajectory: CurvedTrajectory, members: int, choices: Tensor, changes: int, hulls: list[Intervals]
) -> tuple[list[StepExpansion], list[Intervals]]:
    """The expansion of each of the T - 1 steps, valid for all paths with at most k changes, and the boxes of
    all their states around the T observed ones, with n = 1.

    Args:
        members: M, the number of models whose states are side by side.
        choices: The actions that may be chosen at each step, (>= T - 1, A) bool.
        changes: k.
        hulls: For each step, the intervals of d(a) around the observed path, with n = 1.
    """
    states = trajectory.states
    width = states.shape[-1] // members
    reach, steps, boxes = nowhere(members, changes + 1, width, states), [], []
    for time in range(trajectory.horizon - 1):
        boxes.append(_hull(reach))
        size = torch.linalg.vector_norm(reach.size, dim=-1).amax().nan_to_num(torch.inf)
        step = _expansion(trajectory, members, time, choices[time], size)
        steps.append(step)
        near = size.new_zeros(members, 1, 1)
        kept = step.kept(reach, near)
        if changes and bool(choices[time].any()):
            fewer = Intervals(reach.centre[:, :-1], reach.radius[:, :-1])
            other = step.changed(fewer, near, hulls[time])
            lower = torch.minimum(kept.centre - kept.radius, _shifted(other.centre - other.radius, torch.inf))
            upper = torch.maximum(
                kept.centre + kept.radius, _shifted(other.centre + other.radius, -torch.inf)
            )
            kept = Intervals((lower + upper) / 2, (upper - lower) / 2)
        reach = kept
    return steps, [*boxes, _hull(reach)]


def _hull(intervals: Intervals) -> Intervals:
    """The smallest box around all paths, (M, n, D) -> (M, 1, D)."""
    lower = (intervals.centre - intervals.radius).amin(1, keepdim=True)
    upper = (intervals.centre + intervals.radius).amax(1, keepdim=True)
    return Intervals((lower + upper) / 2, (upper - lower) / 2)


def _shifted(ends: Tensor, first: float) -> Tensor:
    """The ends of one change more, (M, k, D) -> (M, k + 1, D)."""
    return torch.nn.functional.pad(ends, (0, 0, 1, 0), value=first)


def _expansion(
    trajectory: CurvedTrajectory, members: int, time: int, allowed: Tensor, size: Tensor
) -> StepExpansion:
    state = trajectory.states[time : time + 1]
    width, taken = state.shape[-1] // members, int(trajectory.observed[time])
    every = allowed.clone()
    every[taken] = True
    curvature = trajectory.curvature(
        state.expand(width, -1),
        time,
        torch.eye(width, dtype=state.dtype, device=state.device).repeat(1, members),
        size.expand(width),
    )
    jacobians = _blocks(curvature.jacobian[0], members)
    jacobian = jacobians[:, taken]
    lower, upper = (jacobians[:, every] - jacobian.unsqueeze(1)).aminmax(dim=1)
    # |H_i| of each component i: the covectors are the coordinate axes.
    bends = spectral_bound(_blocks(curvature.hessian, members)).transpose(1, 2)
    certified = curvature.second_derivative_norm[:, every].isfinite().all()
    third = curvature.hessian_lipschitz[:, every].amax(-1).masked_fill(~certified, torch.inf)
    return StepExpansion(
        jacobian,
        ((lower + upper) / 2, (upper - lower) / 2),
        (bends[:, taken].unsqueeze(1), bends[:, every].amax(1, keepdim=True)),
        third.expand(members, 1, -1),
        MARGIN * (1 + float(state.abs().max()) + float(size)),
    )


def _blocks(matrices: Tensor, members: int) -> Tensor:
    """The diagonal blocks, (..., M D, M D) -> (M, ..., D, D)."""
    width = matrices.shape[-1] // members
    return torch.stack(
        [
            matrices[..., member * width : (member + 1) * width, member * width : (member + 1) * width]
            for member in range(members)
        ]
    )


PATHS = 128
"""Paths stepped at once under all actions: a compromise between mechanisms that evaluate their networks once
for all actions, and those that do it for each."""
BOXES = 4096
"""Groups bounded at once."""


@dataclass
class Paths:
    """n paths from one time step on, rolled out under the observed actions.

    Attributes:
        start: The first time step of the tables.
        states: (n, T - start, M D).
        before: Rewards of the steps from `start` on before each, cumulated, (n, T - start + 1, *lanes).
        hulls: For each step, the smallest and the largest effect of an allowed change, (n, M D) each; None
            where nothing may be changed.
        away: |delta|, the distance to the observed states, (M, n, T - start).
    """

    start: int
    states: Tensor
    before: Tensor
    hulls: list[tuple[Tensor, Tensor] | None]
    away: Tensor


class GroupBounds:
    """Bounds for one episode.

    Args:
        objective: The episode; its reward must be bounded over boxes.
        process: Its decision process, which counts the evaluations.
        changes: k, the maximum number of changes of any sequence.
    """

    def __init__(
        self,
        objective: CounterfactualReturn,
        trajectory: CurvedTrajectory,
        process: CounterfactualProcess,
        changes: int,
    ) -> None:
        self.objective, self.trajectory, self.process = objective, trajectory, process
        self.members = objective.surrogate.members
        self.observed = self.roll(trajectory.states[:1], 0)
        still = nowhere(self.members, 1, trajectory.states.shape[-1] // self.members, trajectory.states)
        hulls = [
            still if hull is None else enclosed(*hull, self.members) for hull in self.observed.hulls[:-1]
        ]
        self.steps, self.boxes = expansions(trajectory, self.members, objective.choices, changes, hulls)

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
        away = (stacked - self.trajectory.states[start:]).unflatten(-1, (self.members, -1))
        return Paths(
            start,
            stacked,
            torch.cat([torch.zeros_like(gained[:, :1]), gained], 1),
            hulls,
            torch.linalg.vector_norm(away, dim=-1).permute(2, 0, 1),
        )

    def _advance(self, states: Tensor, time: int) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """The next states under the observed action, and the hull of the effects of the allowed changes."""
        if not len(self.process.others[time]):
            return self.process.keep(states, time), None
        actions = torch.cat([self.trajectory.observed[time : time + 1], self.process.others[time]])
        self.process.effort.network_evaluations += len(states) * len(actions)
        parts = []
        for part in states.split(PATHS):
            every = self.trajectory.branch(part, time, actions)
            kept = every[:, 0]
            lower, upper = every[:, 1:].aminmax(dim=1)
            parts.append((kept, lower - kept, upper - kept))
        kept, lower, upper = (torch.cat(column) for column in zip(*parts, strict=True))
        return kept, (lower, upper)

    def of(self, paths: Paths, rows: Tensor, times: Tensor) -> Tensor:
        """Upper bounds on the rewards from the start of the paths on. Returns (n, *lanes), one bound for each
        member if the worst one counts.

        Args:
            rows: The path of each group, (n,) long.
            times: The steps of each group that change, (n, m) long, ascending, none before the start.
        """
        order = times[:, 0].argsort(stable=True)
        bounds_sorted = [self._sorted(paths, rows[part], times[part]) for part in order.split(BOXES)]
        bounds = paths.before.new_zeros((len(rows), *self.objective.lanes))
        bounds[order] = torch.cat(bounds_sorted)
        return bounds

    def _sorted(self, paths: Paths, rows: Tensor, times: Tensor) -> Tensor:
        """The bounds of groups in the order of their first change, (n,), (n, m) -> (n, *lanes)."""
        first, horizon = times[:, 0], self.objective.horizon
        total = paths.before[rows, first - paths.start]
        joined = torch.bincount(first, minlength=horizon).cumsum(0).tolist()
        width = paths.states.shape[-1] // self.members
        boxes = nowhere(self.members, 0, width, paths.states)
        for time in range(int(first[0]), horizon):
            active, at = joined[time], time - paths.start
            boxes = _joined(boxes, active)
            mine = rows[:active]
            states = paths.states[mine, at]
            change = (times[:active] == time).any(1)
            total[:active] += self._highest(states, boxes, change, time)
            if time == horizon - 1:
                break
            away = paths.away[:, mine, at].unsqueeze(-1)
            hull = paths.hulls[at]
            step = self.steps[time]
            following = step.kept(boxes, away)
            if hull is not None and bool(change.any()):
                places = change.nonzero()[:, 0]
                effects = enclosed(hull[0][mine[places]], hull[1][mine[places]], self.members)
                other = step.changed(boxes.rows(places), away[:, places], effects)
                following.centre[:, places] = other.centre
                following.radius[:, places] = other.radius
            boxes = following
        return total

    def _highest(self, states: Tensor, boxes: Intervals, change: Tensor, time: int) -> Tensor:
        """Upper bounds on the reward of a step, (n, *lanes)."""
        lower, upper = boxes.ends(states)
        kept = self.trajectory.observed[time : time + 1]
        highest = self.objective.highest_rewards(lower, upper, time, kept)[..., 0]
        if self.process.acts and bool(change.any()):
            places = change.nonzero()[:, 0]
            others = self.process.others[time]
            highest[places] = self.objective.highest_rewards(lower[places], upper[places], time, others).amax(
                -1
            )
        return highest

    def anywhere(self) -> float:
        """Upper bound on the return under any k changes."""
        total = torch.zeros(
            self.objective.lanes, dtype=self.trajectory.states.dtype, device=self.trajectory.states.device
        )
        for time, box in enumerate(self.boxes):
            lower, upper = box.ends(self.trajectory.states[time : time + 1])
            actions = self.trajectory.observed[time : time + 1]
            if self.process.acts:
                actions = torch.cat([actions, self.process.others[time]])
            total = total + self.objective.highest_rewards(lower, upper, time, actions).amax(-1)[0]
        return float(self.objective.joined(total))


def _joined(boxes: Intervals, count: int) -> Intervals:
    """The boxes with those of further groups, which have not moved yet."""
    more = count - boxes.centre.shape[1]
    if not more:
        return boxes
    return Intervals(
        *(torch.nn.functional.pad(part, (0, 0, 0, more)) for part in (boxes.centre, boxes.radius))
    )
