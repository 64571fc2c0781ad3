"""Mechanisms: a value as a function of its parents and its noise, and the way back.

Everything structural in this package rests on one pair,

    v = forward(parents, noise),        noise = abduct(parents, v),

and randomness lives in `noise` alone. Sampling is `forward` on fresh noise, a counterfactual is `forward` on
abducted noise with other parents.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 2 and Eq. 6; Qin et al. (2023), Sec. 2.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from rehearsal_torch.data.part import Part
from rehearsal_torch.mechanisms.trajectory import Course


class Mechanism(Part, ABC):
    """The law of c values given p parents, invertible in its c noises."""

    @abstractmethod
    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""

    @abstractmethod
    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c): the noise for which `forward` gives `values`."""

    @abstractmethod
    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Fresh noise, (*shape, c)."""


class TransitionMechanism(Mechanism, ABC):
    """A mechanism of one time step, whose first c parents are the values of the step before."""

    @abstractmethod
    def unroll(self, states: Tensor, fixed: Tensor, observed: Tensor) -> Course:
        """The steps of one observed episode under any actions, with the noise that the episode had.

        Args:
            states: The observed course, (T, c).
            fixed: The other parents at each step under each action, (T - 1, A, p - c).
            observed: The actions taken, (T,) long; the last moves no state.

        Returns:
            The course; whatever does not depend on the state is computed once, here.
        """
