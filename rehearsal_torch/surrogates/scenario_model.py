"""Sampled rehearsal models: what a method that reasons by samples asks of a surrogate.

What is not known of a world is its graph G, its parameters theta, and the noise eps to come. From a law of (G, theta) a
surrogate samples K models with a noise each. In sample k, every variable is affine in what is set,

    V_k(x, z) = offset_k(x) + slope_k z,

a *scenario*; the outcomes are among the variables. Given (G_k, theta_k) alone, what is neither context nor altered has a
density that factorises over cliques; its entropy depends on neither x nor z where the noise is normal with a covariance of
its own. Hence the information that a row carries about the model,

    I(G, theta; V | x, z) = E_k log p(V_k | G_k, theta_k, x, z) - E_k log (1 / K) sum_j p(V_k | G_j, theta_j, x, z),

needs `SampledModels.log_density` alone.

Two users: the posterior over graphs and parameters (`structural_posterior`) answers it; searches and objectives of Qin et
al. (2023) ask it.

Source: Qin et al. (2023), Sec. 4.1, Prop. 5 (Eq. 8), Eq. 9 and App. C.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.table import positions
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate


@dataclass(frozen=True)
class AffineScenarios:
    """K scenarios for B situations: V_k = offset_k + slope_k z.

    Attributes:
        names: The d variables, in order.
        altered: The k variables that are set.
        offset: (B, K, d), each column in its variable's unit; zero for what is set.
        slope: (K, d, k), the same in all situations; the unit matrix for what is set, zero for the context.
    """

    names: tuple[str, ...]
    altered: tuple[str, ...]
    offset: Tensor
    slope: Tensor

    def only(self, names: Sequence[str]) -> "AffineScenarios":
        """The scenarios of some variables, such as the outcomes, in the order asked for.

        Raises:
            KeyError: for a variable that the scenarios do not have.
        """
        place = positions(self.names, names)
        return AffineScenarios(tuple(names), self.altered, self.offset[..., place], self.slope[..., place, :])

    def rows(self, actions: Tensor) -> Tensor:
        """What happens under actions, (..., B, k) -> (..., B, K, d)."""
        return self.offset + torch.einsum("sdk,...bk->...bsd", self.slope, actions.to(self.slope))


class SampledModels(ABC):
    """K models (G_k, theta_k), equally likely, with the noise of a scenario each.

    All questions are about the same K models and the same noise: what differs between alterations and situations is not chance.
    """

    @property
    @abstractmethod
    def graphs(self) -> Tensor:
        """Which hypothesis each model's graph is, (K,), ascending: the models are sorted by graph, so a beginning of them is no sample."""

    @abstractmethod
    def scenarios(self, contexts: Tensor, altered: Sequence[str]) -> AffineScenarios:
        """The K scenarios of every variable of the task's graph.

        Args:
            contexts: (B, |X|), in the task's order.
            altered: The k variables that are set, in the order of z; may be empty.

        Raises:
            ValueError: if a variable may not be altered.
        """

    @abstractmethod
    def log_density(self, rows: Tensor, altered: Sequence[str]) -> Tensor:
        """log p(v | G_k, theta_k, x, z) of what is neither context nor altered.

        Args:
            rows: (..., d), every variable in the order of the task's graph; the context x and what is set, z, are read from it.
            altered: Which were set.

        Returns:
            (..., K), in nats per product of the variables' units.
        """

    @abstractmethod
    def entropy(self, altered: Sequence[str]) -> Tensor:
        """The entropy of that density, (K,), in the same nats: the mean of -log_density under model k, whatever x and z."""


class ScenarioModel(RehearsalSurrogate, ABC):
    """A surrogate from which rehearsal models are sampled.

    Args:
        task: Who plays which part; plain data or a RehearsalTask. Its graph names the variables, in order.
        graphs: The graphs that may be true; None for the task's own.
    """

    @abstractmethod
    def graph_weights(self) -> Tensor:
        """p(G | D) of the hypotheses, (H,), summing to one."""

    @abstractmethod
    def sampled(self, count: int, seed: int = 0) -> SampledModels:
        """K = count models, drawn from what the data leave open; graphs in proportion to their weights.

        Args:
            count: K.
            seed: Different seeds give independent samples; the same seed gives the same.
        """
