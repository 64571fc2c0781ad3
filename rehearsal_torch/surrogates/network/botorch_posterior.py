"""Posteriors of a causal network's outputs, and the sampler that BoTorch takes for them.

A sample is one plausible network e (`causal_surrogate.PlausibleNetworks`), the same at every action a,

    f_e(a) = 1/S sum_s h(x(a, u_s, e)),

with x the node values, h the reward or the values themselves, and u_1 ... u_S draws of the noise that all
samples and actions share. The posterior is that of E fixed networks, the members, each followed by its mirror
image (the deviations of its mechanisms with the other sign): its mean and variance are theirs. With floating
base samples, sample i is member i mod E, whatever their values; integer ones are numbers of members.
Candidates, and a baseline, are thus compared within one network. (BoTorch's `IndexSampler` draws other
members, with replacement, for each element of a t-batch: equal candidates would differ in value.)

`ExperimentPosterior` samples the node values of q experiments, each with its own noise, by normal scores.

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

from rehearsal_torch.surrogates.network.causal_surrogate import PlausibleNetworks

# Node values (..., N) -> outputs (..., m).
Read = Callable[[Tensor], Tensor]


def in_pairs(values: Tensor) -> Tensor:
    """Members in the order of samples: each followed by its mirror image, (E, ...) -> (E, ...)."""
    return values.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)


class NetworkPosterior(Posterior):
    """The joint posterior (*b, q, m) of m outputs at q actions; `evaluate` gives (E, *b, q, m) of members."""

    batch_range = (0, -1)  # the dimensions of t-batches, which share base samples

    def __init__(
        self, evaluate: Callable[[], Tensor], members: int, shape: tuple[int, ...], like: Tensor
    ) -> None:
        self._evaluate, self.members, self._shape, self._like = evaluate, members, torch.Size(shape), like

    @property
    def batch_shape(self) -> torch.Size:
        """b."""
        return self._shape[:-2]

    @property
    def base_sample_shape(self) -> torch.Size:
        """(*b, 1): base samples do not count."""
        return torch.Size((*self.batch_shape, 1))

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self._like.device

    @property
    def dtype(self) -> torch.dtype:
        """float64."""
        return self._like.dtype

    @property
    def distribution(self) -> Distribution:
        """AttributeError: BoTorch's entropy searches ask for a normal distribution."""
        raise AttributeError(
            "the posterior of a causal network is given by samples and has no normal distribution: this "
            "acquisition function is for Gaussian processes; use one that draws samples, such as qLogNEI"
        )

    @property
    def mvn(self) -> Distribution:
        """AttributeError, as `distribution`."""
        return self.distribution

    @cached_property
    def values(self) -> Tensor:
        """The outputs of the members, (E, *b, q, m)."""
        return self._evaluate()

    @property
    def mean(self) -> Tensor:
        """The mean over members, (*b, q, m)."""
        return self.values.mean(0)

    @property
    def variance(self) -> Tensor:
        """The variance over members, (*b, q, m)."""
        return self.values.var(0)

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self._shape

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Samples, (*sample_shape, *b, q, m), in a random order; differentiable in the actions."""
        shape = torch.Size([1]) if sample_shape is None else sample_shape
        rounds = -(-shape.numel() // self.members)
        members = torch.cat([torch.randperm(self.members) for _ in range(rounds)])[: shape.numel()]
        return self.values[members].reshape(self._extended_shape(shape))

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Samples (*sample_shape, *b, q, m), differentiable in the actions: the members in turn, or, if base
        samples are integers of shape sample_shape, those with these numbers.
        """
        members = torch.arange(sample_shape.numel(), device=self.device)
        if not base_samples.is_floating_point():
            members = base_samples.flatten()
        return self.values[members % self.members].reshape(self._extended_shape(sample_shape))


@final
class ExperimentPosterior(NetworkPosterior):
    """The joint posterior of the noisy outcomes of q experiments."""

    batch_range = (0, -2)

    def __init__(
        self,
        networks: PlausibleNetworks,
        actions: Tensor,  # (*b, q, k), in their units
        noise: Tensor,  # (S, N), for mean and variance
        quantiles: Tensor,  # (Q, N), sorted draws of the noise, between which that of an experiment lies
        read: Read,  # The outputs of node values, (..., q, N) -> (..., q, m)
        shape: tuple[int, ...],  # (*b, q, m)
    ) -> None:
        super().__init__(self._single_outcomes, networks.size * len(noise), shape, noise)
        self.networks, self.actions, self.noise, self.quantiles = networks, actions, noise, quantiles
        self.read = read

    @property
    def base_sample_shape(self) -> torch.Size:
        """(*b, q, N)."""
        return torch.Size((*self.actions.shape[:-1], self.noise.shape[-1]))

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Outcomes at new normal scores, (*sample_shape, *b, q, m); differentiable in the actions."""
        shape = torch.Size([1]) if sample_shape is None else sample_shape
        # Drawn on the CPU, so that a seed means the same on every device.
        scores = torch.randn(shape + self.base_sample_shape, dtype=self.dtype).to(self.device)
        return self.rsample_from_base_samples(shape, scores)

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Outcomes at normal scores (*sample_shape, *b, q, N), members in turn; ValueError otherwise."""
        expected = sample_shape + self.base_sample_shape
        if not base_samples.is_floating_point() or base_samples.shape != expected:
            raise ValueError(
                f"expected normal base samples of shape {tuple(expected)}, as SobolQMCNormalSampler draws "
                f"them; got {tuple(base_samples.shape)} of {base_samples.dtype}"
            )
        count, size = sample_shape.numel(), self.networks.size
        scores = base_samples.reshape(count, *self.base_sample_shape)
        outcomes = []
        for block in scores.split(size):
            few = min(size, len(block) + len(block) % 2)
            networks = self.networks.few(few)
            # The members are stored mirror images last, and sampled in pairs.
            order = in_pairs(torch.arange(few, device=block.device))
            noise = block.new_zeros(few, *block.shape[1:])
            noise[order[: len(block)]] = self._noise_at_scores(block)
            values = networks.propagate(self.actions, noise.unsqueeze(-2))[..., 0, :]
            outcomes.append(values[order[: len(block)]])
        return self.read(torch.cat(outcomes)).reshape(self._extended_shape(sample_shape))

    def _single_outcomes(self) -> Tensor:
        """One outcome for each pair of member and noise draw, (E S, *b, q, m)."""
        values = in_pairs(self.networks.propagate(self.actions, self.noise))
        return self.read(values.movedim(-2, 1).flatten(0, 1))

    def _noise_at_scores(self, scores: Tensor) -> Tensor:
        """Noise, interpolated between quantiles, (..., N) -> (..., N)."""
        count = len(self.quantiles)
        positions = (torch.special.ndtr(scores.detach()) * count - 0.5).clamp(0, count - 1)
        below = positions.floor().long().clamp_max(max(count - 2, 0))
        nodes = torch.arange(scores.shape[-1], device=scores.device)
        low, high = self.quantiles[below, nodes], self.quantiles[(below + 1).clamp_max(count - 1), nodes]
        return low + (positions - below) * (high - low)


@final
class MemberSampler(MCSampler):
    """The members of a `NetworkPosterior` as samples, the same for all t-batches; the seed is not used."""

    def forward(self, posterior: Posterior) -> Tensor:
        """Samples (*sample_shape, *b, q, m)."""
        members = torch.arange(self.sample_shape.numel(), device=posterior.device)
        self.base_samples = members.reshape(self.sample_shape)
        return posterior.rsample_from_base_samples(self.sample_shape, self.base_samples)

    def _update_base_samples(self, posterior: Posterior, base_sampler: MCSampler) -> None:
        """No-op: the base samples depend on no posterior."""


GetSampler.register(NetworkPosterior)(
    lambda _, sample_shape, *, seed=None: MemberSampler(sample_shape, seed=seed)
)
GetSampler.register(ExperimentPosterior)(
    lambda _, sample_shape, *, seed=None: SobolQMCNormalSampler(sample_shape, seed=seed)
)
