"""Mechanisms: values as a function of their parents and of exogenous noise, and the way back.

Everything structural in this package rests on one pair,

    v = forward(parents, noise),        noise = abduct(parents, v),

and randomness lives in `noise` alone. Sampling is `forward` on fresh noise, a counterfactual is `forward` on
abducted noise with other parents. Where the function itself is uncertain, because it was learnt from finitely
many observations, `belief` gives its posterior mean and standard deviation at the same arguments.

One convention of shapes holds for all of them: p parents stand in the last dimension of (..., p), d noises
and d values in the last dimension of (..., d), also where d = 1; leading dimensions broadcast.

A mechanism may be a module with parameters or a frozen record of what an estimator has fitted.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 2 and Eq. 6; Qin et al. (2023), Sec. 2.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from rehearsal_torch.mechanisms.trajectory import Trajectory


class Mechanism(ABC):
    """The mechanism of d values given p parents and d noises.

    Attributes:
        exact: Whether `abduct` inverts `forward` but for rounding; False where it is an estimate of its own.
    """

    exact: ClassVar[bool] = True

    @abstractmethod
    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., d) -> (..., d); the posterior mean where the function is uncertain."""

    @abstractmethod
    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., d) -> (..., d): the noise for which `forward` gives `values`."""


class GenerativeMechanism(Mechanism, ABC):
    """A mechanism that knows the distribution of its noise."""

    @abstractmethod
    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Fresh noise, (*shape, d)."""


class TransitionMechanism(GenerativeMechanism, ABC):
    """A mechanism of one time step, whose first d parents are the values of the step before."""

    @abstractmethod
    def unroll(self, states: Tensor, fixed: Tensor, observed: Tensor) -> Trajectory:
        """The steps of one observed episode under any actions, with the noise that the episode had.

        Args:
            states: The observed course, (T, d).
            fixed: The other parents at each step under each action, (T - 1, A, p - d).
            observed: The actions taken, (T,) long; the last moves no state.

        Returns:
            The course; whatever does not depend on the state is computed once, here.
        """


class NodeMechanism(Mechanism, ABC):
    """The mechanism of one variable, d = 1, whose function is uncertain; parents are scaled."""

    @abstractmethod
    def scaled(self, inputs: Tensor) -> Tensor:
        """Parents from the variables' units to the unit cube (beyond it outside the observations), (..., p)
        -> (..., p).
        """

    @abstractmethod
    def belief(self, parents: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of the function, in the variable's unit: (..., p), (..., 1)
        -> (..., 1), (..., 1), the latter not expanded over noise that it does not depend on.
        """
