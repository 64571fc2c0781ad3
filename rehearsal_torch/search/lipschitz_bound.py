"""Lipschitz bounds on the value of a node.

Given constants K_t of the counterfactual maps and C of the reward, the value V(x, l, t), the largest reward from time t
on with l changes made, is Lipschitz in x with

    L_{T-1} = C,    L_t = C + K_t L_{t+1}.

Values that are known to be upper bounds at anchor states therefore bound every other state's value,

    V(x, l, t) <= min over anchors y of  W(y, l, t) + L_t |x - y|,

and the recursion of V, with that in place of the values one step ahead, gives W at the anchors from the last time step
to the first. A node whose remaining path is fixed needs no anchors: one rollout is its value.

Bounds hold in floating point: float64, distances by differences (never by matrix products, which come out too short),
and a margin above the rounding of the states and rewards.

Source: Tsirtsis and Gomez-Rodriguez (2023), Lemma 5, Algorithm 1, Prop. 6, Eq. 11 and Thm. 7; anchors by time and
exact values are ours.
"""

import time as clock
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.counterfactual_process import CounterfactualProcess

ENTRIES = 1 << 16  # distances held at once: few enough to stay in the processor's cache


class UnboundedError(ValueError):
    """No Lipschitz constant is known, so that no Lipschitz bound exists."""


def value_constants(objective: CounterfactualReturn, constants: Tensor | None = None) -> Tensor:
    """L_t, (T,) float64.

    Args:
        objective: The episode and its reward.
        constants: (T - 1,) constants K_t that hold wherever the search and its anchors come (on a ball, say); the
            course's own global ones where left out.

    Raises:
        UnboundedError: if the course or the reward knows no finite constant.
    """
    known = objective.course.lipschitz() if constants is None else constants
    if known is None or not bool(torch.isfinite(known).all()) or not objective.constant < torch.inf:
        culprit = "reward has no finite Lipschitz constant in these coordinates" if known is not None else "transition has no Lipschitz constant"
        raise UnboundedError(f"expected Lipschitz constants of the transition and the reward; the {culprit}: use greedy_changes, or exhaustive where it fits")
    lipschitz = [objective.constant]
    for constant in known.tolist()[::-1]:
        lipschitz.append(objective.constant + constant * lipschitz[-1])
    return torch.tensor(lipschitz[::-1], dtype=torch.float64, device=objective.course.states.device)


class LipschitzBound:
    """Upper bounds W at anchors, and from there everywhere.

    Args:
        process: The episode's process, in float64.
        anchors: T tensors (n_t, D), the anchor states of each time step.
        lipschitz: L_t, (T,).
        exact: Take the exact reward-to-go of nodes whose remaining path is fixed, and the exact last reward, instead
            of bounds by anchors (the paper's Algorithm 1 uses anchors throughout).
        deadline: A time of `time.perf_counter` after which only the first anchor of each remaining time step is bounded.
    """

    def __init__(self, process: CounterfactualProcess, anchors: Sequence[Tensor], lipschitz: Tensor, exact: bool = True, deadline: float | None = None) -> None:
        self.process, self.exact, self.lipschitz = process, exact, lipschitz
        scale = float(process.objective.rewards(process.objective.course.states).abs().sum()) + float(lipschitz[0])
        self.margin = process.objective.rounding(1e-12, 1.0 + scale)
        # An anchor where the model has no finite state bounds nothing.
        self.anchors, self.distances = [each[each.isfinite().all(-1)] for each in anchors], 0
        T, every = process.horizon, list(range(process.changes + 1))
        self.values = [torch.empty(0)] * T
        last = [process.final(self.anchors[-1], self.anchors[-1].new_full((len(self.anchors[-1]),), spent))[0] for spent in every]
        self.values[-1] = _above(torch.stack(last, -1))
        for time in range(T - 2, -1, -1):
            if deadline is not None and clock.perf_counter() > deadline:
                self.anchors[time] = self.anchors[time][:1]
            self.values[time] = _above(self.ahead(self.anchors[time], time, every))

    def fixed(self, time: int, spent: int) -> bool:
        """Whether `at` is exact there: the rest of the path is fixed, or only the last reward is left."""
        process = self.process
        return self.exact and (spent >= process.changes or time > process.last or time == process.horizon - 1)

    def at(self, states: Tensor, time: int, spent: Sequence[int]) -> Tensor:
        """Upper bounds on V(x, l, t) for several l, (n, D), t, (m,) -> (n, m); distances are shared over l."""
        process = self.process
        out = states.new_empty(len(states), len(spent))
        bounded = [column for column, made in enumerate(spent) if not self.fixed(time, made)]
        if len(bounded) < len(spent) and time < process.horizon - 1:
            out[:] = process.to_go(states, time).unsqueeze(-1)
        elif len(bounded) < len(spent):
            out[:] = torch.stack([process.final(states, states.new_full((len(states),), made))[0] for made in spent], -1)
        if bounded:
            out[:, bounded] = self.interpolated(states, time, [spent[column] for column in bounded])
        return out

    def ahead(self, states: Tensor, time: int, spent: Sequence[int]) -> Tensor:
        """Upper bounds on V(x, l, t) by looking one step ahead, max over a of R + bound(F_t(x, a)), (n, D), t, (m,) -> (n, m).

        Source: Tsirtsis and Gomez-Rodriguez (2023), Algorithm 1 and Eq. 11.
        """
        process = self.process
        if time == process.horizon - 1:
            return torch.stack([process.final(states, states.new_full((len(states),), made))[0] for made in spent], -1)
        rewards, other = process.rewards(states), process.others[time]
        best = process.kept(rewards, time).unsqueeze(-1) + self.at(process.keep(states, time), time + 1, spent)
        able = [column for column, made in enumerate(spent) if made < process.changes]
        if able and len(other):
            children = self.at(process.branch(states, time).flatten(0, 1), time + 1, [spent[column] + 1 for column in able])
            gained = process.changed(rewards, time).unsqueeze(-1) + children.unflatten(0, (len(states), len(other)))
            best[:, able] = torch.maximum(best[:, able], gained.amax(1))
        return best

    def interpolated(self, states: Tensor, time: int, spent: Sequence[int]) -> Tensor:
        """Upper bounds on V(x, l, t) from the anchors at time t alone, (n, D), t, (m,) -> (n, m)."""
        anchors, values = self.anchors[time], self.values[time]
        steep = float(self.lipschitz[time]) * (1 + 1e-12)
        out = states.new_empty(len(states), len(spent))
        self.distances += len(states) * len(anchors)
        rows = max(1, ENTRIES // len(anchors))
        for start in range(0, len(states), rows):
            part = torch.cdist(states[start : start + rows], anchors, compute_mode="donot_use_mm_for_euclid_dist").mul_(steep)
            for column, made in enumerate(spent):
                torch.amin(part + values[:, made], 1, out=out[start : start + rows, column])
        return out.add_(self.margin)


def _above(values: Tensor) -> Tensor:
    """Values of anchors as upper bounds: one that is undefined bounds nothing."""
    return values.where(~values.isnan(), torch.inf)
