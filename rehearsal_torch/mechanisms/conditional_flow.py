"""Conditional flows: the density of c continuous values given p parents, by change of variables.

The values are generated from standard normal noise u one after the other (autoregressively),

    v_j = m_j + s_j S_j^-1(u_j),        (m_j, log s_j, S_j) = network_j(parents, v_1, ..., v_{j-1}),

S_j a monotone rational-quadratic spline on [-bound, bound] that is the identity outside. The triangular form
is general: every continuous distribution of c values can be written so. Fitted by maximum likelihood,

    -log p(v | parents) = sum_j [u_j^2 / 2 + log(2 pi) / 2 - log |d u_j / d v_j|].

A single value need not be duplicated: a coupling flow, which needs two dimensions, would have to fit (v, v),
a distribution without a density whose likelihood is unbounded. The networks are initialised at zero, where
the flow is the standard normal distribution; values should be standardised, or be residuals of a simpler
model, which the flow then corrects. Used by `surrogates.structural.flow_scm`.

Source: Qin et al. (2025), Sec. 4.1 (a conditional flow for each clique; their released code duplicates single
values); Durkan et al. (2019), Eq. 4-8 (splines); Rozet et al., Zuko (their implementation of them).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from zuko.transforms import MonotonicAffineTransform, MonotonicRQSTransform

from rehearsal_torch.data.size_limits import bounded, reserve
from rehearsal_torch.data.trainable_part import Trained
from rehearsal_torch.mechanisms.mechanism import Mechanism


class ConditionalFlow(Trained, Mechanism):
    """An autoregressive spline flow of c standardised values given p standardised parents.

    Args:
        parents: p, may be 0.
        outputs: c.
        hidden: Widths of the hidden layers of each value's network.
        bins: Number of pieces of each spline.
        bound: The splines act on [-bound, bound].
    """

    def __init__(
        self, parents: int, outputs: int, hidden: Sequence[int] = (32, 32), bins: int = 8, bound: float = 5.0
    ) -> None:
        super().__init__()
        if parents < 0 or outputs < 1 or bins < 2 or bound <= 0 or any(width < 1 for width in hidden):
            raise ValueError(
                "expected parents >= 0, outputs >= 1, bins >= 2, bound > 0 and hidden layers of at least one "
                f"unit; got parents={parents}, outputs={outputs}, hidden={tuple(hidden)}, bins={bins}, "
                f"bound={bound}"
            )
        for index, width in enumerate(hidden):
            bounded(f"hidden[{index}]", width)
        bounded("bins", bins, 1000, 2)
        for index in range(outputs):
            widths = (parents + index, *(hidden if parents + index else ()), 3 * bins + 1)
            reserve("hidden", sum((inputs + 1) * units for inputs, units in pairwise(widths)))
        self.parents, self.outputs, self.bins, self.bound = parents, outputs, bins, bound
        self.networks = nn.ModuleList(
            _network(parents + index, hidden, 3 * bins + 1) for index in range(outputs)
        )

    def loss(self, *examples: Tensor) -> Tensor:
        """Mean negative log-likelihood of values (n, c) given parents (n, p)."""
        parents, values = examples
        return -self.log_density(parents, values).mean()

    def finish(self) -> None:
        """The trained state is final."""

    def log_density(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (...)."""
        noise, log_derivatives = self._abducted(parents, values)
        return (log_derivatives - noise.square() / 2 - math.log(2 * math.pi) / 2).sum(-1)

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        parents, noise = parents.to(self._dtype), noise.to(self._dtype)
        values: list[Tensor] = []
        for index in range(self.outputs):
            inputs = parents
            if values:
                previous = torch.broadcast_tensors(*values)
                batch_shape = torch.broadcast_shapes(parents.shape[:-1], previous[0].shape)
                stacked = torch.stack([value.expand(batch_shape) for value in previous], -1)
                inputs = torch.cat([parents.expand(*batch_shape, parents.shape[-1]), stacked], -1)
            affine, spline = self._transforms(index, inputs)
            values.append(affine.inv(spline.inv(noise[..., index])))
        return torch.stack(torch.broadcast_tensors(*values), -1)

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(..., p), (..., c) -> (..., c)."""
        return self._abducted(parents, values)[0]

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def _abducted(self, parents: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Noise, and log |d u_j / d v_j|, (..., c) each."""
        parents, values = parents.to(self._dtype), values.to(self._dtype)
        batch_shape = torch.broadcast_shapes(parents.shape[:-1], values.shape[:-1])
        parents, values = parents.expand(*batch_shape, -1), values.expand(*batch_shape, -1)
        noise, log_derivatives = [], []
        for index in range(self.outputs):
            affine, spline = self._transforms(index, torch.cat([parents, values[..., :index]], -1))
            standardised, first = affine.call_and_ladj(values[..., index])
            u, second = spline.call_and_ladj(standardised)
            noise.append(u)
            log_derivatives.append(first + second)
        return torch.stack(noise, -1), torch.stack(log_derivatives, -1)

    def _transforms(
        self, index: int, inputs: Tensor
    ) -> tuple[MonotonicAffineTransform, MonotonicRQSTransform]:
        """The maps from value to noise: the affine map, then the spline."""
        shift, scale, widths, heights, log_derivatives = self.networks[index](inputs).split(
            [1, 1, self.bins, self.bins, self.bins - 1], -1
        )
        return MonotonicAffineTransform(shift.squeeze(-1), scale.squeeze(-1)), MonotonicRQSTransform(
            widths, heights, log_derivatives, bound=self.bound
        )


class Constant(nn.Module):
    """Trainable constants, for a value without parents."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(outputs))

    def forward(self, seen: Tensor) -> Tensor:
        """(..., 0) -> (..., outputs)."""
        return self.values.expand(*seen.shape[:-1], -1)


def _network(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Module:
    if not inputs:
        return Constant(outputs)
    layers: list[nn.Module] = []
    width = inputs
    for units in hidden:
        # A bounded activation: outside the range of the data the correction saturates instead of growing.
        layers += [nn.Linear(width, units), nn.Tanh()]
        width = units
    last = nn.Linear(width, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)
