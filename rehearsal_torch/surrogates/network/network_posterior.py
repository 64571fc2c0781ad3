"""Posteriors of a causal network's outputs, and the sampler that BoTorch takes for them.

A sample is one plausible network: one epistemic draw e ~ N(0, I) of all nodes, the same at every action,

    f_e(a) = 1/S sum_s h(x(a, u_s, e)),      x_i = m_i + e_i s_i  in topological order,

h the reward or node values, and u_1 ... u_S noise draws that all samples and actions share. Samples are
functions of e, so that samplers of normal numbers (`SobolQMCNormalSampler`, `IIDNormalSampler`) serve: a base
sample is e, (N,), common to the q actions and to all t-batches, so that candidates, and a baseline, are
compared within one network. Mean and variance are those of E fixed draws e, the members; a sampler that
`get_sampler` chooses takes these, in order. (BoTorch's `IndexSampler` draws other members, with replacement,
for each element of a t-batch: equal candidates would differ in value.)

The outcome of an experiment has a noise of its own: `ExperimentPosterior` samples the node values of q
experiments. Here the functions are drawn jointly at the inputs that the q experiments reach,

    f_i(w_1 ... w_q) = mu_i + R_i z_i,      R_i R_i' the posterior covariance of the q x q inputs,

node by node (ancestral sampling), and a base sample is (q, 2 N): z and the normal scores of the noise.

Source: Balandat et al. (2020), Sec. 3 (samples as functions of base samples); Astudillo and Frazier (2021),
Sec. 4.2 (a sample through the graph).
"""

from collections.abc import Callable
from functools import cached_property
from typing import final

import torch
from botorch.posteriors.posterior import Posterior
from botorch.sampling.base import MCSampler
from botorch.sampling.get_sampler import GetSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor
from torch.distributions import Distribution

from rehearsal_torch.surrogates.network.causal_model import CausalNetwork

# Maximum number of actions times samples times noise draws in one tensor, where the parts can be computed one
# after the other; small enough for a cache.
CHUNK = 8192

# Node values (..., N) -> outputs (..., m).
Read = Callable[[Tensor], Tensor]


def plausible_values(
    network: CausalNetwork, actions: Tensor, noise: Tensor, epistemic: Tensor, read: Read
) -> Tensor:
    """The outputs (E, *b, q, m) of plausible networks at actions (*b, q, k), each averaged over the same
    noise draws (S, N); epistemic draws are (E, N) or (E, *b, N), each dimension of b perhaps 1.
    """
    if epistemic.ndim == 2:
        epistemic = epistemic.reshape(len(epistemic), *[1] * (actions.ndim - 2), -1)
    draws = len(noise)
    size = len(epistemic)
    if not torch.is_grad_enabled():
        size = max(1, CHUNK // max(1, actions.shape[:-1].numel() * draws))

    def values(part: Tensor) -> Tensor:
        own = part.movedim(0, -2).unsqueeze(-3).repeat_interleave(draws, -2)
        nodes, _ = network.propagate(actions, noise.repeat(len(part), 1), lambda index, _: own[..., index])
        return read(nodes).unflatten(-2, (len(part), draws)).mean(-2).movedim(-2, 0)

    return torch.cat([values(part) for part in epistemic.split(size)])


class NetworkPosterior(Posterior):
    """The joint posterior of m outputs at q actions: `evaluate` maps epistemic draws (M, *b, N) to outputs of
    plausible networks (M, *b, q, m), the shape is (*b, q, m); members are fixed draws, (E, N).
    """

    # The dimensions of t-batches, which share base samples.
    batch_range = (0, -1)

    def __init__(self, evaluate: Callable[[Tensor], Tensor], members: Tensor, shape: tuple[int, ...]) -> None:
        self._evaluate, self._members, self._shape = evaluate, members, torch.Size(shape)

    @property
    def batch_shape(self) -> torch.Size:
        """b."""
        return self._shape[:-2]

    @property
    def base_sample_shape(self) -> torch.Size:
        """(*b, N)."""
        return torch.Size((*self.batch_shape, self._members.shape[-1]))

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self._members.device

    @property
    def dtype(self) -> torch.dtype:
        """float64."""
        return self._members.dtype

    @property
    def distribution(self) -> Distribution:
        """Refused (AttributeError), in words: BoTorch's entropy searches ask for a normal distribution."""
        raise AttributeError(
            "the posterior of a causal network is given by samples and has no normal distribution: this "
            "acquisition function is for Gaussian processes; use one that draws samples, such as qLogNEI"
        )

    @property
    def mvn(self) -> Distribution:
        """Refused, as `distribution` is."""
        return self.distribution

    @cached_property
    def values(self) -> Tensor:
        """The outputs of the members, (E, *b, q, m)."""
        return self._evaluate(self._members.reshape(len(self._members), *[1] * len(self.batch_shape), -1))

    @property
    def mean(self) -> Tensor:
        """The mean over members, (*b, q, m)."""
        return self.values.mean(0)

    @property
    def variance(self) -> Tensor:
        """The variance over members, (*b, q, m)."""
        return self.values.var(0) if len(self._members) > 1 else torch.zeros_like(self.values[0])

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self._shape

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Samples under new normal draws e, (*sample_shape, *b, q, m); differentiable in the actions."""
        shape = torch.Size([1]) if sample_shape is None else sample_shape
        flat = [1] * len(self.batch_shape)
        # Drawn on the CPU, so that a seed means the same on every device.
        drawn = torch.randn(*shape, *flat, *self.base_sample_shape[len(flat) :], dtype=self.dtype)
        drawn = drawn.to(self.device)
        return self.rsample_from_base_samples(shape, drawn.expand(shape + self.base_sample_shape))

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Samples as a function of base samples, differentiable in the actions, (*sample_shape, *b, q, m): of
        normal draws e, (*sample_shape, *b, N); or of whole numbers 0 ... n - 1 (sample_shape), for members.
        ValueError if the shape is another one.
        """
        if not base_samples.is_floating_point():
            count, members = sample_shape.numel(), len(self._members)
            # With more samples than members each member is taken equally often, up to one.
            places = base_samples.flatten()
            places = places if count <= members else places * members // count
            return self.values[places].reshape(self._extended_shape(sample_shape))
        expected = sample_shape + self.base_sample_shape
        if base_samples.shape != expected:
            raise ValueError(
                f"expected base samples of shape {tuple(expected)}; got {tuple(base_samples.shape)}"
            )
        flat = base_samples.flatten(0, len(sample_shape) - 1) if sample_shape else base_samples.unsqueeze(0)
        for dim in range(1, 1 + len(self.batch_shape)):
            if flat.shape[dim] > 1 and flat.stride(dim) == 0:
                flat = flat.narrow(dim, 0, 1)
        return self._evaluate(flat).reshape(self._extended_shape(sample_shape))


@final
class ExperimentPosterior(NetworkPosterior):
    """The joint posterior of the noisy outcomes of q experiments."""

    batch_range = (0, -2)

    def __init__(
        self,
        network: CausalNetwork,
        actions: Tensor,  # (*b, q, k), in their units
        noise: Tensor,  # (S, N), for mean and variance
        members: Tensor,  # (E, N), for mean and variance
        quantiles: Tensor,  # (Q, N), sorted draws of the noise, between which that of an experiment lies
        read: Read,  # The outputs of node values, (..., q, N) -> (..., q, m)
        shape: tuple[int, ...],  # (*b, q, m)
    ) -> None:
        super().__init__(self._outcomes, members, shape)
        self.network, self.actions, self.noise, self.quantiles = network, actions, noise, quantiles
        self.read = read

    @property
    def base_sample_shape(self) -> torch.Size:
        """(*b, q, 2 N)."""
        return torch.Size((*self.actions.shape[:-1], 2 * self._members.shape[-1]))

    @cached_property
    def values(self) -> Tensor:
        """Single outcomes, one for each pair of member and noise draw, (E S, *b, q, m)."""
        draws, members = len(self.noise), len(self._members)
        both, noise = self._members.repeat_interleave(draws, 0), self.noise.repeat(members, 1)
        outcomes, _ = self.network.propagate(self.actions, noise, lambda index, _: both[:, index])
        return self.read(outcomes.movedim(-2, 0))

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Outcomes at normal base samples (*sample_shape, *b, q, 2 N); differentiable in the actions."""
        if not base_samples.is_floating_point():
            expected = "expected normal base samples for noisy outcomes, as SobolQMCNormalSampler draws them"
            raise ValueError(f"{expected}; got {base_samples.dtype}")
        return super().rsample_from_base_samples(sample_shape, base_samples)

    def _outcomes(self, base: Tensor) -> Tensor:
        """(M, *b, q, 2 N) -> (M, *b, q, m)."""
        epistemic, scores = base.chunk(2, -1)
        actions = self.actions.expand(len(base), *self.actions.shape)
        shape = actions.shape[:-1]
        noise = self._noise(scores).expand(*shape, -1)
        return self.read(self.network.experiments(actions, epistemic.expand(*shape, -1), noise))

    def _noise(self, scores: Tensor) -> Tensor:
        """The noise at normal scores, (..., N) -> (..., N)."""
        count = len(self.quantiles)
        places = (torch.special.ndtr(scores.detach()) * count - 0.5).clamp(0, count - 1)
        below = places.floor().long().clamp_max(max(count - 2, 0))
        nodes = torch.arange(scores.shape[-1], device=scores.device)
        low, high = self.quantiles[below, nodes], self.quantiles[(below + 1).clamp_max(count - 1), nodes]
        return low + (places - below) * (high - low)


@final
class MemberSampler(MCSampler):
    """The members of a `NetworkPosterior` as samples, the same for all t-batches; without use of the seed."""

    def forward(self, posterior: Posterior) -> Tensor:
        """Samples (*sample_shape, *b, q, m)."""
        places = torch.arange(self.sample_shape.numel(), device=posterior.device)
        self.base_samples = places.reshape(self.sample_shape)
        return posterior.rsample_from_base_samples(self.sample_shape, self.base_samples)

    def _update_base_samples(self, posterior: Posterior, base_sampler: MCSampler) -> None:
        """Nothing: the base samples depend on no posterior."""


GetSampler.register(NetworkPosterior)(
    lambda _, sample_shape, *, seed=None: MemberSampler(sample_shape, seed=seed)
)
GetSampler.register(ExperimentPosterior)(
    lambda _, sample_shape, *, seed=None: SobolQMCNormalSampler(sample_shape, seed=seed)
)
