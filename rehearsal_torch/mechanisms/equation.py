"""Equations: a known truth as a course.

Where the law of a world is known, its counterfactual steps need no learning: the equation itself, with the noise
that the episode really had, is the course. Toy worlds, simulators and hand-made test instances enter here.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7, with the true law in the place of a learnt one.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.course import Course


class EquationCourse(Course):
    """Steps given by a function.

    Args:
        states: The observed course, (T, D).
        observed: The actions taken, (T,) long.
        actions: A, how many actions there are.
        equation: F, called with states (n, D), the time t and actions (n,) long; answers (n, D).
        constants: (T - 1,) Lipschitz constants of F_t in the state, or None where none are known.
    """

    def __init__(
        self, states: Tensor, observed: Tensor, actions: int, equation: Callable[[Tensor, int, Tensor], Tensor], constants: Tensor | None = None
    ) -> None:
        super().__init__(states, observed, actions)
        self.equation, self.constants = equation, constants

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        return self.equation(states, time, actions.expand(len(states)))

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        chosen = torch.arange(self.actions, device=states.device) if actions is None else actions
        rows = states.repeat_interleave(len(chosen), 0)
        return self.equation(rows, time, chosen.repeat(len(states))).unflatten(0, (len(states), len(chosen)))

    def lipschitz(self) -> Tensor | None:
        """(T - 1,) float64, or None."""
        return self.constants
