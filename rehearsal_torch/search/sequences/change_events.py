"""Change events: the single changes of a path, and the exact effect of each by itself.

Given a path of a trajectory under actions o, the event e = (t, a) replaces o_t by a and keeps all later
actions. Its states

    x_{t+1} = F_t(c_t, a),    x_{q+1} = F_q(x_q, o_q),

are rolled out for all events at once, in one batch that grows by A - 1 rows per time step: T^2 (A - 1) / 2
network evaluations. For a return that is linear in the states this gives the gain D(e) = sum_q r.(x_q - c_q)
exactly.

Source: ours; the last step of the search of Tsirtsis and Gomez-Rodriguez (2023), Sec. 4, done for every t at
once.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.mechanism import Trajectory
from rehearsal_torch.search.sequences.decision_process import ROWS, Effort


@dataclass(frozen=True)
class ChangeEvents:
    """n events in the order of time, with the path from which they depart.

    Attributes:
        path: c, (T, D).
        kept: o, (T - 1,) long.
        times: t of each event, (n,) long, ascending.
        actions: a of each event, (n,) long.
        effects: Displacements delta_q(e), (n, T, D); zero up to the event's time.
        gains: D(e), (n,).
    """

    path: Tensor
    kept: Tensor
    times: Tensor
    actions: Tensor
    effects: Tensor
    gains: Tensor

    @cached_property
    def norms(self) -> Tensor:
        """|delta_q(e)|, (n, T)."""
        return torch.linalg.vector_norm(self.effects, dim=-1)

    @cached_property
    def first(self) -> int:
        """The time of the first event; T - 1 if there are no events."""
        return int(self.times[0]) if len(self.times) else len(self.path) - 1

    @cached_property
    def _bounds(self) -> list[int]:
        return torch.searchsorted(self.times, torch.arange(len(self.path), device=self.times.device)).tolist()

    def span(self, time: int) -> tuple[int, int]:
        """Start and stop index of the events of one time step; those before start are earlier."""
        return self._bounds[time], self._bounds[time + 1]

    def reach(self, time: int, count: int) -> Tensor:
        """Upper bounds on the displacement of the path at a time by 0, 1 ... count events, as sums of their
        own displacements, (count + 1,).
        """
        largest = self.norms.new_zeros(len(self.path))
        largest.scatter_reduce_(0, self.times, self.norms[:, time], "amax")
        top = largest.topk(min(count, len(largest))).values.cumsum(0)
        padded = torch.cat([top.new_zeros(1), top, top[-1:].expand(max(0, count - len(top)))])
        return padded[: count + 1]

    def only(self, places: Tensor) -> "ChangeEvents":
        """A subset of the events; `places` is (m,) long and ascending."""
        return ChangeEvents(
            self.path,
            self.kept,
            self.times[places],
            self.actions[places],
            self.effects[places],
            self.gains[places],
        )


def change_events(
    trajectory: Trajectory,
    gradient: Tensor,
    path: Tensor,
    kept: Tensor,
    times: list[int],
    effort: Effort,
    choices: Tensor | None = None,
) -> ChangeEvents:
    """Rolls out all events at the given times.

    Args:
        gradient: r, (D,).
        path: c, (T, D).
        kept: o, (T - 1,) long.
        times: The time steps at which a change may be made, ascending.
        choices: The actions that may be chosen at each step, (T - 1, A) bool; None for all.
    """
    every, horizon = torch.arange(trajectory.actions, device=kept.device), len(path)
    moving, states, when, what = path[:0], [], [], []
    for time in range(times[0] if times else horizon, horizon - 1):
        rows = [trajectory.step(moving, time, kept[time])] if len(moving) else []
        if time in times:
            others = (
                every[every != kept[time]]
                if choices is None
                else every[(every != kept[time]) & choices[time]]
            )
            rows.append(trajectory.branch(path[time : time + 1], time, others)[0])
            what.append(others)
            when.append(torch.full_like(others, time))
        moving = torch.cat(rows)
        effort.network_evaluations += len(moving)
        states.append(moving)
    count = len(moving)
    effects = path.new_zeros(count, horizon, path.shape[-1])
    for offset, rows_ in enumerate(states):
        time = times[0] + offset + 1
        effects[: len(rows_), time] = rows_ - path[time]
    gains = (effects @ gradient).sum(-1)
    empty = kept[:0]
    return ChangeEvents(
        path, kept, torch.cat(when) if when else empty, torch.cat(what) if what else empty, effects, gains
    )


def roll_out(
    trajectory: Trajectory, gradient: Tensor, events: ChangeEvents, sets: Tensor, effort: Effort
) -> tuple[Tensor, Tensor]:
    """Exact gains of sets of events at different times. Returns gains (N,) and action sequences (N, T - 1)
    long.

    Args:
        gradient: r, (D,).
        sets: Indices of the events of each set in the order of time, -1 after the last, (N, m) long; N and m
            at least 1.
    """
    horizon, kept = len(events.path), events.kept
    sequences = kept.repeat(len(sets), 1)
    for column in sets.unbind(1):
        rows = (column >= 0).nonzero()[:, 0]
        sequences[rows, events.times[column[rows]]] = events.actions[column[rows]]
    # In the order of their first change, sets join one growing batch at the step where they leave the path.
    first, order = events.times[sets[:, 0]].sort()
    moving, gains = events.path[:0], events.path.new_zeros(len(sets))
    joined = torch.searchsorted(first, torch.arange(horizon - 1, device=first.device), right=True).tolist()
    for time in range(int(first[0]), horizon - 1):
        start, count = events.path[time], joined[time]
        moving = torch.cat([moving, start.expand(count - len(moving), -1)])
        actions = sequences[order[:count], time]
        moving = torch.cat(
            [
                trajectory.step(rows, time, taken)
                for rows, taken in zip(moving.split(ROWS), actions.split(ROWS), strict=True)
            ]
        )
        effort.network_evaluations += count
        gains[order[:count]] += (moving - events.path[time + 1]) @ gradient
    return gains, sequences
