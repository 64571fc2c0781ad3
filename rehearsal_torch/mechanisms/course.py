"""Courses: one observed episode under other actions.

With the noise u_t of each step abducted, the counterfactual transition is a deterministic map

    x_{t+1} = F_t(x_t, a) = g(x_t, a, u_t),      F_t(s_t, a_t) = s_{t+1},

in which searches evaluate many states and actions at once. A course may know Lipschitz constants of its maps; a
smooth course also bounds how their Jacobians vary, which sharper searches need.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 6-7 and Def. 1.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Course(ABC):
    """The maps F_0 ... F_{T-2} of one episode.

    Args:
        states: The observed course, (T, D), in the coordinates of the maps.
        observed: The actions taken, (T,) long, each in 0 ... A - 1; the last moves no state.
        actions: A, how many actions there are.
    """

    def __init__(self, states: Tensor, observed: Tensor, actions: int) -> None:
        self.states, self.observed, self.actions = states, observed, actions

    @property
    def horizon(self) -> int:
        """T, the number of states."""
        return len(self.states)

    @abstractmethod
    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """F_t row by row, (n, D), t, (n,) or () long -> (n, D)."""

    @abstractmethod
    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """F_t under all actions, or under those named, (n, D), t, (A',) long -> (n, A', D)."""

    @abstractmethod
    def lipschitz(self) -> Tensor | None:
        """(T - 1,) float64, constants K_t with |F_t(x, a) - F_t(y, a)| <= K_t |x - y| for all x, y, a; None if unknown."""


class SmoothCourse(Course, ABC):
    """A course whose maps have bounded second derivatives."""

    @abstractmethod
    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """Derivatives of F_t in the state under each action, (n, D) -> (n, A, D, D), float64."""


def replay(course: Course, actions: Tensor) -> Tensor:
    """The states under whole action sequences, (n, T or T - 1) long -> (n, T, D); the first state is the observed one."""
    states = [course.states[:1].expand(len(actions), -1)]
    for time in range(course.horizon - 1):
        states.append(course.step(states[-1], time, actions[:, time]))
    return torch.stack(states, 1)
