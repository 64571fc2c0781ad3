"""Certified quadratic upper bound on the joint gain of several changes.

Given a path c_0 ... c_{T-1} of a trajectory under its own actions o, and a return that is linear in the
states, R(x) = r.x + constant, an *event* e = (t, a) replaces o_t by a. Let delta_q(e) be the displacement
x_q - c_q that e alone causes and D(e) its gain; both come from one exact rollout. This module computes
numbers W(e, f), one per pair, such that for every set E of at most m events at different times

    gain(E) <= sum of D(e) over E  +  sum of W(e, f) over the pairs of E.

Theory. With the adjoint p_{T-1} = r, p_q = r + DF_q' p_{q+1} along the path and the displacement X_q of E,
summing r.X_q by parts gives, exactly,

    gain(E) = sum_q psi_q(X_q; a_q),
    psi_q(y; a) = p_{q+1} . (F_q(c_q + y, a) - F_q(c_q, o_q) - DF_q(c_q, o_q) y),

where psi_q(0; o) = 0 and D psi_q(0; o) = 0: curvature enters step by step and nothing is multiplied along the
path. Write psi(y; a) = psi(0; a) + G_a.y + y'C_a y / 2 + cubic, G_a = (DF_a - DF_o)'p, C_a = D^2(p.F_a),
|cubic| <= N |y|^3 / 6, and X_q = sum_e delta_q(e) + eps_q. M and N with the index of an action are the
`second_derivative_norm` and the `hessian_lipschitz` of its map (`Curvature`). Subtracting D(e) for each e
leaves, for a pair e before f at time t,

    W(e, f) = G_f.delta_t(e) + delta_t(e)'(C_f - C_o) delta_t(e) / 2 + sum_{q > t} delta_q(e)' C_q delta_q(f)
    + rest,

where the rest bounds all third-order terms, with n_q(e) = |delta_q(e)|, R_q the largest displacement by m
events at q, eta_q(e, f) the pair's share of |eps_q|, and Y_q = R_q + |eps_q|:

- mixed differences of psi_q(.; o): sum over l of N |S||d|(|S| + |d|)/2 <= N R_q/2 * sum of n_q(e)
  n_q(f) over pairs;
- eps in psi_q(.; o), whose gradient norm at y is at most |C_q||y| + N |y|^2/2: eta (|C_q| Y + N
  Y^2/2);
- at the step of f itself: (N_f + N_o)/6 |y|^3, with y caused by at most m - 1 events, |y|^3 <= Y^2
  sum n (n^3 if m = 2);
- at the step of each of at most m - 2 later events g: |G_g| eta + |C_g - C_o|(n(e) n(f) + eta Y) + (N_g +
  N_o)/6 Y^2 eta, of which the largest m - 2 steps count.

eps obeys eps_{q+1} <= |DF_o| eps_q + M_o * sum of n n over pairs, plus, at the step of an event f,
|(DF_f - DF_o) delta(e)| + (M_f + M_o)/2 R n(e) for each e before it, since second differences of F are
at most M |S||d|. There the Jacobian norm is that of f's action, at most `excess` times that of the kept
action; at most m - 2 changes follow a pair. All constants hold on the ball of radius Y_q around c_q, which
contains every point used, and Y_q depends on earlier steps only.

Events. The states of an event e = (t, a), which keeps all later actions,

    x_{t+1} = F_t(c_t, a),    x_{q+1} = F_q(x_q, o_q),

are rolled out for all events at once, in one batch that grows by A - 1 rows per time step: T^2 (A - 1) / 2
network evaluations. This gives the gain D(e) = sum_q r.(x_q - c_q) exactly.

Source: the problem is Tsirtsis and Gomez-Rodriguez (2023), Eq. 9; events are the last step of the search of
their Sec. 4, done for every t at once.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.mechanism import Curvature, CurvedTrajectory, Trajectory, spectral_bound
from rehearsal_torch.search.sequences.decision_process import ROWS, Effort


@dataclass(frozen=True)
class ChangeEvents:
    """n events in the order of time, with the path from which they depart."""

    path: Tensor  # c, (T, D)
    kept: Tensor  # o, (T - 1,) long
    times: Tensor  # t of each event, (n,) long, ascending
    actions: Tensor  # a of each event, (n,) long
    effects: Tensor  # Displacements delta_q(e), (n, T, D); zero up to the event's time
    gains: Tensor  # D(e), (n,)

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
        """Upper bounds on the path's displacement by 0 ... count events: sums of their own, (count + 1,)."""
        largest = self.norms.new_zeros(len(self.path))
        largest.scatter_reduce_(0, self.times, self.norms[:, time], "amax")
        top = largest.topk(min(count, len(largest))).values.cumsum(0)
        padded = torch.cat([top.new_zeros(1), top, top[-1:].expand(max(0, count - len(top)))])
        return padded[: count + 1]

    def only(self, places: Tensor) -> "ChangeEvents":
        """A subset of the events; `places` is (m,) long and ascending."""
        columns = (self.times, self.actions, self.effects, self.gains)
        return ChangeEvents(self.path, self.kept, *(column[places] for column in columns))


def change_events(
    trajectory: Trajectory,
    gradient: Tensor,
    path: Tensor,
    kept: Tensor,
    times: list[int],
    effort: Effort,
    choices: Tensor | None = None,
) -> ChangeEvents:
    """Rolls out all events at some time steps, ascending, from a path c, (T, D), under actions o, (T - 1,),
    with gradient r, (D,); `choices`, (T - 1, A) bool, are the allowed actions.
    """
    all_actions, horizon = torch.arange(trajectory.actions, device=kept.device), len(path)
    batch, states, event_times, event_actions = path[:0], [], [], []
    for time in range(times[0] if times else horizon, horizon - 1):
        rows = [trajectory.step(batch, time, kept[time])] if len(batch) else []
        if time in times:
            allowed = all_actions != kept[time]
            others = all_actions[allowed if choices is None else allowed & choices[time]]
            rows.append(trajectory.branch(path[time : time + 1], time, others)[0])
            event_actions.append(others)
            event_times.append(torch.full_like(others, time))
        batch = torch.cat(rows)
        effort.network_evaluations += len(batch)
        states.append(batch)
    effects = path.new_zeros(len(batch), horizon, path.shape[-1])
    for offset, rows_ in enumerate(states):
        time = times[0] + offset + 1
        effects[: len(rows_), time] = rows_ - path[time]
    gains = (effects @ gradient).sum(-1)
    starts, swaps = (torch.cat([kept[:0], *parts]) for parts in (event_times, event_actions))
    return ChangeEvents(path, kept, starts, swaps, effects, gains)


def roll_out(
    trajectory: Trajectory, gradient: Tensor, events: ChangeEvents, sets: Tensor, effort: Effort
) -> tuple[Tensor, Tensor]:
    """Exact gains, (N,), and action sequences, (N, T - 1) long, of sets of events at different times, given
    as indices in the order of time, -1 after the last, (N, m) long; N and m at least 1.
    """
    horizon, kept = len(events.path), events.kept
    sequences = kept.repeat(len(sets), 1)
    for column in sets.unbind(1):
        rows = (column >= 0).nonzero()[:, 0]
        sequences[rows, events.times[column[rows]]] = events.actions[column[rows]]
    # In the order of their first change, sets join one growing batch at the step where they leave the path.
    first, order = events.times[sets[:, 0]].sort()
    batch, gains = events.path[:0], events.path.new_zeros(len(sets))
    joined = torch.searchsorted(first, torch.arange(horizon - 1, device=first.device), right=True).tolist()
    for time in range(int(first[0]), horizon - 1):
        start, count = events.path[time], joined[time]
        batch = torch.cat([batch, start.expand(count - len(batch), -1)])
        actions = sequences[order[:count], time]
        parts = zip(batch.split(ROWS), actions.split(ROWS), strict=True)
        batch = torch.cat([trajectory.step(states, time, part) for states, part in parts])
        effort.network_evaluations += count
        gains[order[:count]] += (batch - events.path[time + 1]) @ gradient
    return gains, sequences


@dataclass(frozen=True)
class GainBound:
    """gain(E) <= sum gains + sum pairs, for sets of at most `changes` events at different times."""

    gains: Tensor  # D(e), exact, (n,)
    pairs: Tensor  # W(e, f), symmetric, minus infinity for events of the same time step, (n, n)
    rest: Tensor  # The third-order part of W, (n, n); the bound is loose by at most twice this
    changes: int  # m

    @property
    def finite(self) -> bool:
        """Whether the bound is finite."""
        return bool(torch.isfinite(self.rest).all() and torch.isfinite(self.gains).all())

    def only(self, places: Tensor) -> "GainBound":
        """The bound restricted to some of the events; `places` is (n',) long and ascending."""
        pairs, rest = (matrix[places][:, places] for matrix in (self.pairs, self.rest))
        return GainBound(self.gains[places], pairs, rest, self.changes)


def gain_bound(
    trajectory: CurvedTrajectory, gradient: Tensor, events: ChangeEvents, changes: int
) -> GainBound:
    """Computes the bound of sets of at most `changes` events around their path, given r, (D,)."""
    steps = _StepSums(trajectory, gradient, events, changes)
    for time in range(events.first, trajectory.horizon - 1):
        steps.advance(time)
    rest = steps.rest + steps.later.sum(0)
    upper = torch.triu(steps.pairs + rest + (steps.pairs.abs() + rest) * 1e-12, 1)
    pairs = (upper + upper.mT).masked_fill(events.times.unsqueeze(0) == events.times.unsqueeze(1), -torch.inf)
    return GainBound(events.gains, pairs, torch.triu(rest, 1), changes)


class _StepSums:
    """The sums over time, accumulated forward; a pair (e, f) is stored at e < f in the order of time."""

    def __init__(
        self, trajectory: CurvedTrajectory, gradient: Tensor, events: ChangeEvents, changes: int
    ) -> None:
        self.trajectory, self.events, self.changes = trajectory, events, changes
        self.adjoint = _adjoint(trajectory, gradient, events)
        count = len(events.times)
        self.pairs, self.rest, self.eta = (gradient.new_zeros(count, count) for _ in range(3))
        self.after = max(0, changes - 2)
        self.later = gradient.new_zeros(self.after, count, count)
        self.epsilon, self.excess = 0.0, 1.0

    def advance(self, time: int) -> None:
        """Adds the contribution of step `time`, and propagates eta and epsilon through it."""
        events = self.events
        start, stop = events.span(time)
        displacements, norms = events.effects[:start, time], events.norms[:start, time]
        reach = events.reach(time, self.changes)
        farthest, before = float(reach[self.changes]), float(reach[self.changes - 1])
        radius = farthest + self.epsilon
        covector, size = self.adjoint[time + 1].unsqueeze(0), displacements.new_tensor([radius])
        bounds = self.trajectory.curvature(events.path[time : time + 1], time, covector, size)
        kept, swaps = int(events.kept[time]), events.actions[start:stop]
        second_norm = float(bounds.second_derivative_norm[0, kept])
        lipschitz = float(bounds.hessian_lipschitz[0, kept])
        hessian = bounds.hessian[0, kept]
        largest_norm = float(bounds.jacobian_norm[0, torch.cat([swaps, events.kept[time : time + 1]])].max())
        jacobian_norm = max(float(bounds.jacobian_norm[0, kept]), 0.9 * largest_norm)
        earlier, eta = slice(0, start), self.eta[:start, :start] * self.excess**self.after
        products = norms.unsqueeze(1) * norms
        factor = float(spectral_bound(hessian)) * radius + 0.5 * lipschitz * radius**2
        self.pairs[earlier, earlier] += displacements @ hessian @ displacements.mT
        self.rest[earlier, earlier] += 0.5 * lipschitz * farthest * products + factor * eta
        epsilon = largest_norm * self.epsilon + 0.5 * second_norm * farthest**2
        if len(swaps):
            change = _ActionChange(bounds, self.adjoint[time + 1], kept, swaps)
            if self.after:
                self._keep_largest(earlier, change.gradient_norm(radius) * eta + change.gap * products)
            self.pairs[earlier, start:stop], self.rest[earlier, start:stop], eta_new = change.with_earlier(
                displacements, norms, before, before + self.epsilon, self.changes
            )
            epsilon += change.spread(before)
            self.eta[earlier, start:stop] = eta_new
        self.eta[earlier, earlier] = self.eta[earlier, earlier] * jacobian_norm + second_norm * products
        self.excess = max(self.excess, largest_norm / jacobian_norm if jacobian_norm else 1.0)
        self.epsilon = min(epsilon, self.excess**self.after * self._pair_displacement(stop))

    def _pair_displacement(self, stop: int) -> float:
        """Upper bound on the displacement by pairs among m events, from the first `stop` events."""
        if not stop:
            return 0.0
        if self.changes < 4:
            return self.changes * (self.changes - 1) / 2 * float(self.eta[:stop, :stop].max())
        times = self.events.times[:stop].unique().tolist()
        spans = [slice(*self.events.span(time)) for time in times]
        rows = torch.stack([self.eta[span, :stop].amax(0) for span in spans])
        steps = torch.stack([rows[:, span].amax(1) for span in spans], 1)
        size = min(self.changes, len(times))
        # Each pair of time steps is counted at both its ends, hence the half.
        ends = (steps + steps.mT).topk(min(size - 1, len(times)), -1).values.sum(-1) if size > 1 else steps[0]
        return 0.5 * float(ends.topk(size).values.sum())

    def _keep_largest(self, old: slice, values: Tensor) -> None:
        """Keeps, for each pair, the largest m - 2 values so far."""
        for largest in self.later[:, old, old]:
            lower = torch.minimum(largest, values)
            torch.maximum(largest, values, out=largest)
            values = lower


class _ActionChange:
    """Terms added by replacing the action of one step, for each of the h candidate actions."""

    def __init__(self, bounds: Curvature, covector: Tensor, kept: int, taken: Tensor) -> None:
        self.jacobian = bounds.jacobian[0, taken] - bounds.jacobian[0, kept]
        self.hessian = bounds.hessian[0, taken] - bounds.hessian[0, kept]
        self.gradient = covector @ self.jacobian
        norms, lipschitz = bounds.second_derivative_norm[0], bounds.hessian_lipschitz[0]
        self.second_derivative_norm = norms[taken] + norms[kept]
        self.hessian_lipschitz = lipschitz[taken] + lipschitz[kept]
        self.hessian_norms = spectral_bound(self.hessian)
        self.gap = float(self.hessian_norms.max())

    def gradient_norm(self, radius: float) -> float:
        """Upper bound on the factor of eta, over all candidate actions."""
        norms = torch.linalg.vector_norm(self.gradient, dim=-1)
        return float((norms + self.hessian_norms * radius + self.hessian_lipschitz / 6 * radius**2).max())

    def spread(self, before: float) -> float:
        """Upper bound on what the step adds to epsilon."""
        second_order = 0.5 * self.second_derivative_norm * before**2
        return float((spectral_bound(self.jacobian) * before + second_order).max())

    def with_earlier(
        self, displacements: Tensor, norms: Tensor, before: float, radius: float, changes: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """W without rest, rest, and eta of earlier events paired with these, (e, D), (e,) -> (e, h) each."""
        quadratic = torch.einsum("ed,hdc,ec->eh", displacements, self.hessian, displacements)
        cubic = norms**3 if changes == 2 else radius**2 * norms
        moved = torch.linalg.vector_norm(torch.einsum("hcd,ed->ehc", self.jacobian, displacements), dim=-1)
        eta = moved + 0.5 * before * norms.unsqueeze(1) * self.second_derivative_norm
        pairs = displacements @ self.gradient.mT + 0.5 * quadratic
        return pairs, cubic.unsqueeze(1) * self.hessian_lipschitz / 6, eta


def _adjoint(trajectory: CurvedTrajectory, gradient: Tensor, events: ChangeEvents) -> Tensor:
    """p, (T, D); zero before the first event's time, where it is not needed."""
    adjoint = gradient.expand(trajectory.horizon, -1).clone()
    for time in range(trajectory.horizon - 2, events.first, -1):
        jacobians = trajectory.jacobians(events.path[time : time + 1], time)[0]
        adjoint[time] += adjoint[time + 1] @ jacobians[events.kept[time]]
    return adjoint
