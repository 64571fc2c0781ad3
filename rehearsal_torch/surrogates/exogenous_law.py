"""Laws of nodes that a Gaussian process and a learnt noise make up.

With the posterior mean mu(w) and standard deviation tau(w) of the process and the noise's standard deviation s(w),

    closed form:   x = mu(w) + sigma(w) (c + u),    u = (x - mu(w)) / sigma(w) - c,

where c is 0 for normal noise (mu is then the node's mean), and sigma is s (what is not known of mu is kept apart, in tau), or the
predictive scale (tau^2 + s^2)^(1/2). The rows that were fitted come back exactly.

    decoded:       x = g(w, u),                     g a Gaussian process of its own on (w, u / 6 + 1/2),

which the noises of the rows have taught; what is not known is then what g does not know.

Source: Ren et al. (2025), Eq. 4-5 and Thm. 4.1 (encoder and decoder); Rasmussen and Williams (2006), Eq. 2.25-2.26.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.mechanisms.gaussian_process_posterior import Posterior
from rehearsal_torch.surrogates.causal_model import NodeLaw


@dataclass(frozen=True)
class Noise:
    """The standard deviation of the noise, in standardised units: s(w)^2 = level * exp(rho h(w)).

    Attributes:
        level: ().
        rho: How much of h is believed, ().
        shape: The posterior of the log squared residuals, h; None where the noise is the same everywhere.
    """

    level: Tensor
    rho: Tensor
    shape: Posterior | None = None

    def deviation(self, scaled: Tensor) -> Tensor:
        """s(w), (..., p) -> (...), or () where it is the same everywhere."""
        if self.shape is None:
            return self.level.sqrt()
        return self.level.sqrt() * (0.5 * self.rho * self.shape.guess(scaled)).exp()


@dataclass(frozen=True)
class ClosedForm(NodeLaw):
    """x = mu(w) + sigma(w) u.

    Attributes:
        offset: Least inputs, (p,).
        width: Their ranges, (p,).
        centre: The node's mean, ().
        scale: Its standard deviation, ().
        posterior: Of mu, in standardised units.
        noise: s.
        shift: The noise's mean over its deviation, where it is not 0, (): mu + s shift is the node's mean.
        predictive: Whether sigma includes what is not known of mu.
    """

    offset: Tensor
    width: Tensor
    centre: Tensor
    scale: Tensor
    posterior: Posterior
    noise: Noise
    shift: Tensor
    predictive: bool

    def scaled(self, inputs: Tensor) -> Tensor:
        """(..., p) -> (..., p)."""
        return (inputs - self.offset) / self.width

    def guess(self, scaled: Tensor, noise: Tensor) -> Tensor:
        """mu(w) + sigma(w) u, (..., p), (...) -> (...)."""
        if self.predictive:
            return self.believed(scaled, noise)[0]
        return self.centre + self.scale * (self.posterior.guess(scaled) + self.noise.deviation(scaled) * (self.shift + noise))

    def believed(self, scaled: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The same and tau(w), which no noise changes: (..., p), (...) -> (...), (...)."""
        mean, unknown = self.posterior.believed(scaled)
        sigma = self._sigma(scaled, unknown)
        return self.centre + self.scale * (mean + sigma * (self.shift + noise)), self.scale * unknown

    def abduct(self, scaled: Tensor, values: Tensor) -> Tensor:
        """(x - mu(w)) / sigma(w), (..., p), (...) -> (...)."""
        mean, unknown = self.posterior.believed(scaled) if self.predictive else (self.posterior.guess(scaled), self.scale)
        return ((values - self.centre) / self.scale - mean) / self._sigma(scaled, unknown) - self.shift

    def _sigma(self, scaled: Tensor, unknown: Tensor) -> Tensor:
        own = self.noise.deviation(scaled)
        return (own.square() + unknown.square()).sqrt() if self.predictive else own


def noise_input(noise: Tensor) -> Tensor:
    """Where a decoder's unit cube has the noise, (...) -> (...)."""
    return noise / 6 + 0.5


@dataclass(frozen=True)
class Decoded(NodeLaw):
    """x = g(w, u), u by the encoder.

    Attributes:
        encoder: Scales and the way back to the noise.
        decoder: Of g, in standardised units.
    """

    encoder: ClosedForm
    decoder: Posterior

    def scaled(self, inputs: Tensor) -> Tensor:
        """(..., p) -> (..., p)."""
        return self.encoder.scaled(inputs)

    def guess(self, scaled: Tensor, noise: Tensor) -> Tensor:
        """The decoder's mean, (..., p), (...) -> (...)."""
        return self.encoder.centre + self.encoder.scale * self.decoder.guess(self._joined(scaled, noise))

    def believed(self, scaled: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The decoder's mean and deviation, (..., p), (...) -> (...), (...)."""
        mean, unknown = self.decoder.believed(self._joined(scaled, noise))
        return self.encoder.centre + self.encoder.scale * mean, self.encoder.scale * unknown

    def abduct(self, scaled: Tensor, values: Tensor) -> Tensor:
        """The encoder's noise, (..., p), (...) -> (...)."""
        return self.encoder.abduct(scaled, values)

    def _joined(self, scaled: Tensor, noise: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(scaled.shape[:-1], noise.shape)
        return torch.cat([scaled.expand(*shape, -1), noise_input(noise).expand(shape).unsqueeze(-1)], -1)
