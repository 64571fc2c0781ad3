"""Posterior samples of a node's mechanism: E functions that are plausible given its rows, in one tensor.

    drawn:       x = f_e(w) + s_e(w) (c_e + u),     f_e a function drawn from the posterior of the process

with the noise's standard deviation s_e and its offset c_e of the same draw (`estimators.function_draws`), so
that differences between several inputs are those of one function. Used by `surrogates.network`.

    deviating:   x = m(w, u) + z_e s(w, u),         z_e ~ N(0, 1),

for a mechanism of which only posterior mean m and standard deviation s are known: it deviates by the same
number of standard deviations everywhere, so that differences count as better known than they are.

Members come in mirrored pairs, first the H of one kind, then their counterparts.

Source: Wilson et al. (2020), Sec. 3; Astudillo and Frazier (2021), Sec. 4.2 (one draw for each node).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

from torch import Tensor

from rehearsal_torch.estimators.function_draws import FunctionDraws, TabulatedFunctions, first_pairs
from rehearsal_torch.mechanisms.mechanism import NodeMechanism


class PlausibleMechanism(ABC):
    """E mechanisms of a node; b stands for t-batches, q for points of each, S for draws of the noise."""

    @abstractmethod
    def __call__(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """Node values at inputs (1 or E, *b, q, 1 or S, p), in the variables' units, with noise: both the
        noise and the values broadcast to (E, *b, q, S).
        """

    @abstractmethod
    def few(self, count: int) -> "PlausibleMechanism":
        """The first pairs, `count` members in all (an even number)."""

    def tabulated(self) -> "PlausibleMechanism":
        """An approximation by tables that is faster to evaluate; by default the same."""
        return self

    def conditioned(self, inputs: Tensor, values: Tensor, seed: int) -> "PlausibleMechanism":  # noqa: ARG002
        """The mechanisms given m further rows, (*b, m, p) and (*b, m); by default TypeError."""
        raise TypeError(
            f"{type(self).__name__} cannot be conditioned on further observations: fit the model again with "
            "them"
        )


@final
@dataclass(frozen=True)
class Deviating(PlausibleMechanism):
    """A mechanism with a deviation, in its posterior standard deviations, for each member, (E,)."""

    mechanism: NodeMechanism
    deviations: Tensor

    def __call__(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """(1 or E, *b, q, 1 or S, p) -> (E, *b, q, S)."""
        mean, std = self.mechanism.belief(self.mechanism.scaled(inputs), noise.unsqueeze(-1))
        mean, std = mean.squeeze(-1), std.squeeze(-1)
        return mean + self.deviations.reshape(-1, *[1] * (inputs.ndim - 2)) * std

    def few(self, count: int) -> "Deviating":
        """The first pairs."""
        return replace(self, deviations=first_pairs(self.deviations, count))


@final
@dataclass(frozen=True)
class Drawn(PlausibleMechanism):
    """Functions drawn from the posterior of a node's process, in standardised units, with their noise."""

    offset: Tensor  # Smallest inputs, (p,)
    width: Tensor  # Ranges of the inputs, (p,)
    centre: Tensor  # The node's mean, ()
    scale: Tensor  # The node's standard deviation, ()
    functions: FunctionDraws | TabulatedFunctions
    levels: Tensor  # The noise's standard deviation, before its shape, (E,)
    shifts: Tensor  # c, (E,)
    # Logarithms of the noise's standard deviation as functions of the inputs: none, or one for all members.
    shape: FunctionDraws | TabulatedFunctions | None = None
    rho: Tensor | None = None  # Their factors, (E,)

    def __call__(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """(1 or E, *b, q, 1 or S, p) -> (E, *b, q, S)."""
        scaled = (inputs - self.offset) / self.width
        flat = scaled.flatten(-3, -2)
        shape, ones = scaled.shape[-3:-1], [1] * (inputs.ndim - 2)
        std = self.levels.reshape(-1, *ones)
        if self.shape is not None:
            std = std * self._noise_factor(scaled)
        value = self.functions(flat).unflatten(-1, shape) + std * (self.shifts.reshape(-1, *ones) + noise)
        return self.centre + self.scale * value

    def few(self, count: int) -> "Drawn":
        """The first pairs."""
        rho = None if self.rho is None else first_pairs(self.rho, count)
        levels, shifts = first_pairs(self.levels, count), first_pairs(self.shifts, count)
        return replace(self, functions=self.functions.few(count), levels=levels, shifts=shifts, rho=rho)

    def tabulated(self) -> "Drawn":
        """Functions of one or two inputs as tables."""
        functions, shape = self.functions, self.shape
        if isinstance(functions, TabulatedFunctions) or functions.width not in (1, 2):
            return self
        if isinstance(shape, FunctionDraws):
            shape = shape.tabulated()
        return replace(self, functions=functions.tabulated(), shape=shape)

    def conditioned(self, inputs: Tensor, values: Tensor, seed: int) -> "Drawn":
        """The functions given further rows, whose noise is assumed to be normal."""
        if isinstance(self.functions, TabulatedFunctions):
            raise TypeError("tables cannot be conditioned: condition the functions that they approximate")
        scaled = (inputs - self.offset) / self.width
        ones = [1] * (inputs.ndim - 1)
        std = self.levels.reshape(-1, *ones)
        if self.shape is not None:
            std = std * self._noise_factor(scaled.unsqueeze(0))
        targets = (values - self.centre) / self.scale - std * self.shifts.reshape(-1, *ones)
        return replace(self, functions=self.functions.conditioned(scaled, targets, std.square(), seed))

    def _noise_factor(self, scaled: Tensor) -> Tensor:
        """The factor of the noise's standard deviation, (1 or E, ..., p) -> (E, ...)."""
        assert self.shape is not None
        assert self.rho is not None
        logs = self.shape(scaled.reshape(1, -1, scaled.shape[-1]))[0].reshape(scaled.shape[:-1])
        return (self.rho.reshape(-1, *[1] * (logs.ndim - 1)) * logs).exp()
