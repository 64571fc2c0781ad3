"""Posterior samples of a node's mechanism: E functions that are plausible given its rows, in one tensor.

    x = f_e(w) + b_e'(w - [w]) + s_e(w) (c_e + u),     f_e a function drawn from the posterior of the process,

with the noise's standard deviation s_e and its offset c_e of the same draw (`estimators.function_draws`), so
that differences between several inputs are those of one function. Used by `surrogates.network`.

[w] is the nearest input within the ranges of the node's rows. Where other nodes are set, inputs can lie far
beyond these; f_e then has the mean and the standard deviation s of what was seen, but a trend would go on.
Hence slopes, those that an rbf process with length-scales l has before it has rows, b_e ~ N(0, s^2 / l^2).
Actions and contexts, which stay within bounds, have none, while what may be set also arises, in or beyond its
range. Where no node may be set, no input has slopes. Further rows (`conditioned`) leave them as they are.

Members come in mirrored pairs, first the H of one kind, then their counterparts.

Source: Wilson et al. (2020), Sec. 3; Astudillo and Frazier (2021), Sec. 4.2 (one draw for each node).
"""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from rehearsal_torch.estimators.function_draws import FunctionDraws, TabulatedFunctions, first_pairs


@final
@dataclass(frozen=True)
class PlausibleMechanism:
    """Functions and their noise, in standardised units; b stands for t-batches, q for points of each, S for
    draws of the noise.
    """

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
    slopes: Tensor | None = None  # b, (E, p)
    ranges: Tensor | None = None  # Of the rows, infinite without slopes, (2, p)

    def __call__(self, inputs: Tensor, noise: Tensor) -> Tensor:
        """Node values at inputs (1 or E, *b, q, 1 or S, p), in the variables' units, with noise: both the
        noise and the values broadcast to (E, *b, q, S).
        """
        scaled = (inputs - self.offset) / self.width
        flat = scaled.flatten(-3, -2)
        shape, ones = scaled.shape[-3:-1], [1] * (inputs.ndim - 2)
        std = self.levels.reshape(-1, *ones)
        if self.shape is not None:
            std = std * self._noise_factor(scaled)
        value = self.functions(flat).unflatten(-1, shape) + self._beyond(scaled)
        return self.centre + self.scale * (value + std * (self.shifts.reshape(-1, *ones) + noise))

    def sloped(self, rows: Tensor, bounded: Tensor, stream: torch.Generator) -> "PlausibleMechanism":
        """With slopes beyond the ranges of rows, (n, p) in the unit cube, along inputs without bounds."""
        if isinstance(self.functions, TabulatedFunctions) or bool(bounded.all()) or not len(rows):
            return self
        ranges = torch.stack([rows.amin(0), rows.amax(0)])
        ranges[:, bounded] = ranges.new_tensor([[-math.inf], [math.inf]])
        spread = self.functions.scales.unsqueeze(-1) / self.functions.lengths
        draws = torch.randn(spread.shape, generator=stream, dtype=torch.float64).to(spread) * spread
        return replace(self, slopes=torch.cat([draws, -draws]), ranges=ranges)

    def few(self, count: int) -> "PlausibleMechanism":
        """The first pairs, `count` members in all (an even number)."""
        levels, shifts = first_pairs(self.levels, count), first_pairs(self.shifts, count)
        rho, slopes = (None if each is None else first_pairs(each, count) for each in (self.rho, self.slopes))
        functions = self.functions.few(count)
        return replace(self, functions=functions, levels=levels, shifts=shifts, rho=rho, slopes=slopes)

    def tabulated(self) -> "PlausibleMechanism":
        """With tables where they fit."""
        functions, shape = self.functions, self.shape
        if isinstance(functions, TabulatedFunctions) or not functions.fits_tables:
            return self
        if isinstance(shape, FunctionDraws):
            shape = shape.tabulated()
        return replace(self, functions=functions.tabulated(), shape=shape)

    def conditioned(self, inputs: Tensor, values: Tensor, seed: int) -> "PlausibleMechanism":
        """Given m further rows (*b, m, p) and (*b, m), with normal noise; TypeError of tables."""
        if isinstance(self.functions, TabulatedFunctions):
            raise TypeError("tables cannot be conditioned: condition the functions that they approximate")
        scaled = (inputs - self.offset) / self.width
        ones = [1] * (inputs.ndim - 1)
        std = self.levels.reshape(-1, *ones)
        if self.shape is not None:
            std = std * self._noise_factor(scaled.unsqueeze(0))
        targets = (values - self.centre) / self.scale - std * self.shifts.reshape(-1, *ones)
        targets = targets - self._beyond(scaled.unsqueeze(0))
        return replace(self, functions=self.functions.conditioned(scaled, targets, std.square(), seed))

    def _beyond(self, scaled: Tensor) -> Tensor | float:
        """What the slopes add, (1 or E, ..., p) -> (E, ...)."""
        if self.slopes is None or self.ranges is None:
            return 0.0
        slopes = self.slopes.reshape(len(self.slopes), *[1] * (scaled.ndim - 2), -1)
        return (slopes * (scaled - scaled.clamp(*self.ranges))).sum(-1)

    def _noise_factor(self, scaled: Tensor) -> Tensor:
        """The factor of the noise's standard deviation, (1 or E, ..., p) -> (E, ...)."""
        assert self.shape is not None
        assert self.rho is not None
        logs = self.shape(scaled.reshape(1, -1, scaled.shape[-1]))[0].reshape(scaled.shape[:-1])
        return (self.rho.reshape(-1, *[1] * (logs.ndim - 1)) * logs).exp()
