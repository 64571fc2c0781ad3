"""Equations with known bounds on their derivatives: a known truth as a curved course.

Given F_t(x, a) as a function that torch can differentiate twice, and global constants

    |DF| <= K_t,    |D^2 F| <= M_t,    |D^3 F| <= N_t    (operator norms of multilinear maps),

derivatives at a point come from automatic differentiation, and on any ball slope = min(K, |DF| + M r), bend = M and
twist = |p| N.

Source: ours.
"""

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor
from torch.func import jacrev, vmap

from rehearsal_torch.mechanisms.curvature import Curvature, CurvedCourse, spectral_bound


@final
class CurvedEquationCourse(CurvedCourse):
    """Steps given by a twice differentiable function and its constants.

    Args:
        states: The observed course, (T, D).
        observed: The actions taken, (T,) long.
        actions: A, how many actions there are.
        equation: F, called with states (n, D), the time t and actions (n,) long; answers (n, D), row by row.
        constants: K, M and N at each step, (T - 1, 3).

    Raises:
        ValueError: if the constants have another shape.
    """

    def __init__(self, states: Tensor, observed: Tensor, actions: int, equation: Callable[[Tensor, int, Tensor], Tensor], constants: Tensor) -> None:
        super().__init__(states, observed, actions)
        if constants.shape != (len(states) - 1, 3):
            raise ValueError(f"expected constants of shape ({len(states) - 1}, 3), bounds of the first three derivatives; got {tuple(constants.shape)}")
        self.equation, self.constants = equation, constants.to(torch.float64)

    def step(self, states: Tensor, time: int, actions: Tensor) -> Tensor:
        """(n, D), t, (n,) or () long -> (n, D)."""
        return self.equation(states, time, actions.expand(len(states)))

    def branch(self, states: Tensor, time: int, actions: Tensor | None = None) -> Tensor:
        """(n, D), t, (A',) long -> (n, A', D)."""
        chosen = torch.arange(self.actions, device=states.device) if actions is None else actions
        rows = states.repeat_interleave(len(chosen), 0)
        return self.equation(rows, time, chosen.repeat(len(states))).unflatten(0, (len(states), len(chosen)))

    def lipschitz(self) -> Tensor:
        """K, (T - 1,)."""
        return self.constants[:, 0]

    def jacobians(self, states: Tensor, time: int) -> Tensor:
        """(n, D), t -> (n, A, D, D)."""
        return vmap(jacrev(self._all(time)))(states)

    def curvature(self, states: Tensor, time: int, covectors: Tensor, radii: Tensor) -> Curvature:
        """(n, D), t, (n, D), (n,) -> derivatives and their bounds on the balls."""
        values = self._all(time)
        hessian = vmap(jacrev(jacrev(lambda state, covector: values(state) @ covector)))(states, covectors)
        jacobian = self.jacobians(states, time)
        first, second, third = self.constants[time]
        shape = jacobian.shape[:2]
        slope = (spectral_bound(jacobian) + second * radii.unsqueeze(1)).clamp_max(first)
        twist = torch.linalg.vector_norm(covectors, dim=-1, keepdim=True) * third
        return Curvature(jacobian, hessian, slope, second.expand(shape), twist.expand(shape))

    def _all(self, time: int) -> Callable[[Tensor], Tensor]:
        """x -> F_t(x, a) for all a, (D,) -> (A, D)."""
        every = torch.arange(self.actions, device=self.states.device)
        return lambda state: self.equation(state.expand(self.actions, -1), time, every)
