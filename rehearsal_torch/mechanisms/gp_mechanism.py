"""Gaussian-process mechanisms of nodes, with additive noise of a learnt scale.

With the posterior mean mu(w) and standard deviation tau(w) of the process and the noise's standard deviation
s(w),

    closed form:   x = mu(w) + sigma(w) (c + u),    u = (x - mu(w)) / sigma(w) - c,

where c is 0 for normal noise (mu is then the node's conditional mean), and sigma is s (the epistemic standard
deviation tau is kept separate) or the predictive standard deviation (tau^2 + s^2)^(1/2). It reproduces the
fitted rows exactly. Used by `surrogates.network`.

    decoded:       x = g(w, u),                     g a second Gaussian process on (w, u / 6 + 1/2),

which is fitted to the abducted noise of the rows. Its epistemic standard deviation is that of g, and it
reproduces a row from the encoder's noise only up to the fit of g.

The decoder takes the noise of the rows as known, as published: the encoder's standard deviation of it,
sigma_h(w) = tau(w) / sigma(w), is propagated in the proof of the regret bound (Ren et al., Lemmas 14.1 and
14.2, proof of Thm. 6.1), neither in Alg. 1 nor in Eq. 5; the closed form includes it, as tau = sigma sigma_h.

Source: Ren et al. (2025), Eq. 4-5 and Thm. 4.1 (encoder and decoder); Rasmussen and Williams (2006), Eq.
2.25-2.26.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.estimators.gp_posterior import Posterior
from rehearsal_torch.mechanisms.mechanism import NodeMechanism


@dataclass(frozen=True)
class Noise:
    """The standard deviation of the noise, in standardised units: s(w)^2 = level * exp(rho h(w))."""

    level: Tensor  # ()
    rho: Tensor  # Weight of h, ()
    shape: Posterior | None = None  # h, of log squared residuals; None if the noise is homoskedastic

    def std(self, scaled: Tensor) -> Tensor:
        """s(w), (..., p) -> (...), or () if it is constant."""
        if self.shape is None:
            return self.level.sqrt()
        return self.level.sqrt() * (0.5 * self.rho * self.shape.posterior_mean(scaled)).exp()


@dataclass(frozen=True)
class ClosedForm(NodeMechanism):
    """x = mu(w) + sigma(w) (c + u)."""

    offset: Tensor  # Smallest inputs, (p,)
    width: Tensor  # Ranges of the inputs, (p,)
    centre: Tensor  # The node's mean, ()
    scale: Tensor  # The node's standard deviation, ()
    posterior: Posterior  # The posterior of mu, in standardised units
    noise: Noise  # s
    shift: Tensor  # c, the mean of the noise over its standard deviation, ()
    predictive: bool  # Whether sigma includes the epistemic standard deviation tau

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.scale.device

    def scaled(self, inputs: Tensor) -> Tensor:
        """(..., p) -> (..., p)."""
        return (inputs - self.offset) / self.width

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """mu(w) + sigma(w) (c + u), (..., p), (..., 1) -> (..., 1)."""
        if self.predictive:
            return self.belief(parents, noise)[0]
        value = self.posterior.posterior_mean(parents) + self.noise.std(parents) * (
            self.shift + noise.squeeze(-1)
        )
        return (self.centre + self.scale * value).unsqueeze(-1)

    def belief(self, parents: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """`forward` and tau(w), which the noise does not change: (..., p), (..., 1) -> (..., 1), (..., 1)."""
        mean, epistemic = self.posterior.belief(parents)
        value = mean + self._sigma(parents, epistemic) * (self.shift + noise.squeeze(-1))
        return (self.centre + self.scale * value).unsqueeze(-1), (self.scale * epistemic).unsqueeze(-1)

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """(x - mu(w)) / sigma(w) - c, (..., p), (..., 1) -> (..., 1)."""
        if self.predictive:
            mean, epistemic = self.posterior.belief(parents)
        else:
            mean, epistemic = self.posterior.posterior_mean(parents), self.scale
        residual = (values.squeeze(-1) - self.centre) / self.scale - mean
        return (residual / self._sigma(parents, epistemic) - self.shift).unsqueeze(-1)

    def _sigma(self, parents: Tensor, epistemic: Tensor) -> Tensor:
        noise_std = self.noise.std(parents)
        return (noise_std.square() + epistemic.square()).sqrt() if self.predictive else noise_std


def noise_input(noise: Tensor) -> Tensor:
    """The coordinate of noise in a decoder's unit cube, (...) -> (...)."""
    return noise / 6 + 0.5


@dataclass(frozen=True)
class Decoded(NodeMechanism):
    """x = g(w, u), u abducted by the encoder, which also scales; the decoder is the posterior of g."""

    encoder: ClosedForm
    decoder: Posterior

    @property
    def device(self) -> torch.device:
        """The encoder's device."""
        return self.encoder.device

    def scaled(self, inputs: Tensor) -> Tensor:
        """(..., p) -> (..., p)."""
        return self.encoder.scaled(inputs)

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        """The decoder's posterior mean, (..., p), (..., 1) -> (..., 1)."""
        mean = self.decoder.posterior_mean(self._inputs(parents, noise.squeeze(-1)))
        return (self.encoder.centre + self.encoder.scale * mean).unsqueeze(-1)

    def belief(self, parents: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The decoder's posterior mean and standard deviation, (..., p), (..., 1) -> (..., 1), (..., 1)."""
        mean, epistemic = self.decoder.belief(self._inputs(parents, noise.squeeze(-1)))
        value = self.encoder.centre + self.encoder.scale * mean
        return value.unsqueeze(-1), (self.encoder.scale * epistemic).unsqueeze(-1)

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        """The encoder's noise, (..., p), (..., 1) -> (..., 1)."""
        return self.encoder.abduct(parents, values)

    def _inputs(self, parents: Tensor, noise: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(parents.shape[:-1], noise.shape)
        return torch.cat([parents.expand(*shape, -1), noise_input(noise).expand(shape).unsqueeze(-1)], -1)
