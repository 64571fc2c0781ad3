"""The counterfactual decision process, in batches.

Given an observed episode and a limit of k changes, a node (x, l, t) is a state x at time t on a path that has made l
changes so far. Keeping the observed action leads to (F_t(x, a_t), l, t + 1); each of the other actions, where l < k
and step t is open, leads to (F_t(x, a), l + 1, t + 1). Once no change is left or no open step ahead, the rest of the
path is fixed, and its reward J_t(x) is found by one rollout under the observed actions.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7-8; the exact reward-to-go is ours.
"""

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.location_scale_course import LocationScaleCourse
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.sequence import Effort

ROWS = 1024  # rows of a network evaluation: few enough that the hidden layer stays in the processor's cache

# A reward that lies so many times its own range from zero is counted from a baseline in float32.
OFFSET = 100.0


class CounterfactualProcess:
    """Steps and rewards of one episode's search tree; every network evaluation is counted.

    Args:
        objective: The episode, its reward and its limit of changes.
        effort: Where evaluations are counted.
        dtype: Precision of states and rewards; float32 only where the course offers it, else the course's own.

    Attributes:
        baseline: What is left out of the reward of each step, in the reward's unit: 0, but in float32 that of the observed states where it is so large
            that differences would be rounded away.
    """

    def __init__(self, objective: CounterfactualReturn, effort: Effort, dtype: torch.dtype = torch.float64) -> None:
        self.objective, self.effort = objective, effort
        course = objective.course
        self.course = course.to(dtype) if isinstance(course, LocationScaleCourse) and course.states.dtype != dtype else course
        self.horizon, self.changes, self.acts = objective.horizon, objective.changes, objective.reward.acts
        self.others = [objective.alternatives(time) for time in range(len(objective.observed))]
        free = [time for time, other in enumerate(self.others) if len(other)]
        self.last = free[-1] if free and self.changes else -1
        self.baseline = 0.0
        self._affine = self._linear()

    @property
    def start(self) -> Tensor:
        """s_0, (1, D)."""
        return self.course.states[:1]

    def rewards(self, states: Tensor) -> Tensor:
        """R, (n, D) -> (n, A), or (n, 1) where the action plays no part."""
        if self._affine is None:
            return self.objective.rewards(states)
        return torch.addmm(self._affine[1], states, self._affine[0])

    def kept(self, rewards: Tensor, time: int) -> Tensor:
        """The reward at time t under the observed action, (n, A or 1) -> (n,)."""
        return rewards[:, self.objective.observed[time]] if self.acts else rewards[:, 0]

    def changed(self, rewards: Tensor, time: int) -> Tensor:
        """The rewards at time t under the other actions, (n, A or 1) -> (n, A')."""
        return rewards[:, self.others[time]] if self.acts else rewards.expand(-1, len(self.others[time]))

    def keep(self, states: Tensor, time: int) -> Tensor:
        """F_t under the observed action, (n, D) -> (n, D)."""
        self.effort.network_evaluations += len(states)
        action = self.course.observed[time]
        if len(states) <= ROWS:
            return self.course.step(states, time, action)
        return torch.cat([self.course.step(part, time, action) for part in states.split(ROWS)])

    def branch(self, states: Tensor, time: int) -> Tensor:
        """F_t under the other actions, (n, D) -> (n, A', D)."""
        others = self.others[time]
        self.effort.network_evaluations += len(states) * len(others)
        rows = max(1, ROWS // max(1, len(others)))
        if len(states) <= rows:
            return self.course.branch(states, time, others)
        return torch.cat([self.course.branch(part, time, others) for part in states.split(rows)])

    def to_go(self, states: Tensor, time: int) -> Tensor:
        """J_t, the reward from time t on under the observed actions, (n, D) -> (n,)."""
        return torch.cat([self._rollout(part, time) for part in states.split(ROWS)])

    def final(self, states: Tensor, spent: Tensor) -> tuple[Tensor, Tensor]:
        """The best last reward and its action, (n, D), changes made (n,) -> (n,), (n,) long; at time T - 1.

        The last action moves no state, so that it is chosen for its reward alone.
        """
        rewards, time = self.rewards(states), self.horizon - 1
        best, action = self.kept(rewards, time), self.course.observed[time].expand(len(states))
        if time > self.last:
            return best, action
        other, place = self.changed(rewards, time).max(-1)
        better = (spent < self.changes) & (other > best)
        return torch.where(better, other, best), torch.where(better, self.others[time][place], action)

    def _rollout(self, states: Tensor, time: int) -> Tensor:
        total = self.kept(self.rewards(states), time)
        for step in range(time, self.horizon - 1):
            states = self.keep(states, step)
            total = total + self.kept(self.rewards(states), step + 1)
        return total

    def _linear(self) -> tuple[Tensor, Tensor] | None:
        """Slope (D, 1) and intercept (1,) of a reward that is affine in the course's coordinates: one product a state."""
        reward, surrogate = self.objective.reward, self.objective.surrogate
        if not isinstance(reward, LinearReward):
            return None
        gradient = reward.gradient(surrogate.names, surrogate.slope())
        if not torch.isfinite(gradient).all():
            return None
        states = self.course.states
        zero = self.objective.rewards(torch.zeros_like(self.objective.course.states[:1]))
        usual = float(self.objective.rewards(self.objective.course.states).mean())
        if states.dtype == torch.float32 and abs(usual) > OFFSET * self.objective.constant:
            self.baseline = usual
        return gradient.to(states).unsqueeze(-1), (zero[0] - self.baseline).to(states)
