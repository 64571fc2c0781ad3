"""Mechanisms: values as a function of their parents and of exogenous noise, and the inverse.

All structural models of this package are built on one pair of maps,

    v = forward(parents, noise),        noise = abduct(parents, v),

with all randomness in `noise`. Sampling is `forward` on fresh noise; a counterfactual is `forward` on
abducted noise with other parents. Where the function itself is uncertain, because it was learnt from finitely
many observations, `belief` returns its posterior mean and standard deviation at the same arguments.

All mechanisms share one convention of shapes: p parents in the last dimension of (..., p), d noises and d
values in the last dimension of (..., d), also if d = 1; leading dimensions broadcast.

A mechanism is either a module with parameters or a frozen record of an estimator's result.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 2 and Eq. 6; Qin et al. (2023), Sec. 2.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.trajectory import Trajectory


class Mechanism(ABC):
    """The mechanism of d values given p parents and d noises."""

    # Whether `abduct` inverts `forward` up to rounding; False if it is a separate estimate
    exact: ClassVar[bool] = True

    @abstractmethod
    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., d) -> (..., d); the posterior mean where the function is uncertain."""

    @abstractmethod
    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., d) -> (..., d): the noise for which `forward` gives `values`."""


class GenerativeMechanism(Mechanism, ABC):
    """A mechanism whose noise distribution is known, so that it can be sampled from."""

    @abstractmethod
    def noise(self, shape: tuple[int, ...]) -> Tensor:
        """Fresh noise, (*shape, d)."""


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """N(0, I) like a tensor; drawn on the CPU, so that a seed means the same on every device."""
    return torch.randn(*shape, dtype=like.dtype).to(like.device)


class TransitionMechanism(GenerativeMechanism, ABC):
    """A mechanism of one time step, whose first d parents are the values of the previous step."""

    @abstractmethod
    def unroll(self, states: Tensor, fixed: Tensor, observed: Tensor) -> Trajectory:
        """The transitions of one observed episode under any actions, with the episode's abducted noise;
        whatever does not depend on the state is computed once, here. Takes the observed states (T, d), the
        other parents at each step under each action (T - 1, A, p - d), and the actions taken (T,) long, of
        which the last affects no state.
        """


class NodeMechanism(Mechanism, ABC):
    """The mechanism of one variable, d = 1, whose function is uncertain; parents are scaled."""

    @property
    def device(self) -> torch.device:
        """Where it computes; the CPU by default."""
        return torch.device("cpu")

    @abstractmethod
    def scaled(self, inputs: Tensor) -> Tensor:
        """Parents from the variables' units to the unit cube of the observations, (..., p) -> (..., p)."""

    @abstractmethod
    def belief(self, parents: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and standard deviation of the function, in the variable's unit: (..., p), (..., 1)
        -> (..., 1), (..., 1); the standard deviation is not expanded over noise on which it does not depend.
        """

    def joint_root(self, parents: Tensor, noise: Tensor) -> Tensor:
        """A matrix R, in the variable's unit, with R R' the posterior covariance of the function at s sets of
        parents: (..., s, p), (..., s, 1) -> (..., s, s). By default the function deviates by the same number
        of standard deviations everywhere; mechanisms that know their covariance override this.
        """
        std = self.belief(parents, noise)[1].squeeze(-1).expand(parents.shape[:-1])
        return torch.nn.functional.pad(std.unsqueeze(-1), (0, std.shape[-1] - 1))

    def as_fitted(self) -> "NodeMechanism":
        """The mechanism without doubts about its fit, by default itself."""
        return self

    def conditioned(self, parents: Tensor, values: Tensor) -> "NodeMechanism":  # noqa: ARG002
        """The mechanism after m further observations, (..., m, p), (..., m, 1), its parameters as fitted.
        Leading dimensions are those of several sets of observations; those of arguments of the new mechanism
        broadcast against them. TypeError if the mechanism cannot take further observations; the default.
        """
        raise TypeError(
            f"{type(self).__name__} cannot be conditioned on further observations: fit the model again with "
            "them, or use a surrogate with decoder=closed_form"
        )
