"""Upper bounds on the return of groups of sequences, by the box that each path can reach.

A group is a path c on which some changes have been made, and the time steps t_1 < ... < t_m of m others,
whose actions are not known. Its bound is

    sum of R(c_q, o_q) over q < t_1  +  sum over q >= t_1 of max R(x, a) over the box of step q,

with the box of `reachable_boxes` (at t_1 it is the path's own state) and, if the reward reads doses, the best
of the allowed actions at the steps t_i. For an ensemble, the mean of the members' bounds. If the worst member
counts, each member has its own bound B^m, and the smallest one holds: for every sequence E of the group and
every member n, min_m R^m(E) <= R^n(E) <= B^n, hence min_m R^m(E) <= min_n B^n. The bound of any k
changes of the observed actions takes at each step the box of all states that k changes can reach; it is
loose, since each step may use another k changes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.trajectory import CurvedTrajectory
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess
from rehearsal_torch.search.sequences.reachable_boxes import Intervals, enclosed, expansions, nowhere

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
        trajectory: Its trajectory.
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
        kept, lower, upper = (torch.cat(each) for each in zip(*parts, strict=True))
        return kept, (lower, upper)

    def of(self, paths: Paths, rows: Tensor, times: Tensor) -> Tensor:
        """Upper bounds on the rewards from the start of the paths on.

        Args:
            paths: Paths under the observed actions.
            rows: The path of each group, (n,) long.
            times: The steps of each group that change, (n, m) long, ascending, none before the start.

        Returns:
            (n, *lanes), one bound for each member if the worst one counts.
        """
        order = times[:, 0].argsort(stable=True)
        found = [self._sorted(paths, rows[part], times[part]) for part in order.split(BOXES)]
        bounds = paths.before.new_zeros((len(rows), *self.objective.lanes))
        bounds[order] = torch.cat(found)
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
        found = self.objective.highest_rewards(lower, upper, time, kept)[..., 0]
        if self.process.acts and bool(change.any()):
            places = change.nonzero()[:, 0]
            others = self.process.others[time]
            found[places] = self.objective.highest_rewards(lower[places], upper[places], time, others).amax(
                -1
            )
        return found

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
