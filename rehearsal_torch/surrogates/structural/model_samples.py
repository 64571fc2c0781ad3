"""Sampled rehearsal models: the surrogate interface of sample-based methods, and hypotheses about the graph.

Three things are uncertain: the graph G, its parameters theta, and future noise eps. From a distribution of
(G, theta) a surrogate samples K models, each with one noise sample. In sample k, every variable is affine in
the altered variables,

    V_k(x, z) = offset_k(x) + gain_k z,

a *scenario*; the outcomes are among the variables. Given (G_k, theta_k) alone, the variables that are neither
context nor altered have a density that factorises over cliques; its entropy depends on neither x nor z if the
noise is normal with a constant covariance. Hence the information of a row about the model,

    I(G, theta; V | x, z) = E_k log p(V_k | G_k, theta_k, x, z)
                            - E_k log (1 / K) sum_j p(V_k | G_j, theta_j, x, z),

needs `SampledModels.log_density` alone. `graph_posterior` implements the interface, for the searches and
objectives of Qin et al. (2023).

A *hypothesis* is a candidate rehearsal graph with the equations that it needs. The context is observed before
anything is set, so that X precedes Z, and Z precedes Y. A hypothesis with another order (a Markov equivalent
graph may have one) keeps its edges among the other variables; arrows into the context are cut, and the
distribution of the context is not modelled: graphs that differ only there predict the same. Members of a
clique that are in the context become parents of the others. Shared equations are fitted once.

Source: Qin et al. (2023), Sec. 2 (alteration graphs), Sec. 3 (X, Z, Y), Sec. 4.1, Prop. 4 (differences in X
do not matter), Prop. 5 (Eq. 8), Eq. 9 and App. C.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.graph_notation import graph_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.structural.linear_scm import Equation, holding, of_clique


@dataclass(frozen=True)
class Hypothesis:
    """A graph with its equations, parents first, for all cliques and alterations outside the context."""

    graph: RehearsalGraph
    equations: tuple[Equation, ...]

    def under(self, altered: Sequence[str]) -> list[Equation]:
        """The equations that hold when `altered` is set by intervention, parents before children."""
        return holding(self.equations, altered)


def hypothesis_of(graph: RehearsalGraph | Mapping[str, Any], task: RehearsalTask) -> Hypothesis:
    """The equations of a graph (`graph_of`) for a task; ValueError for other variables or no cliques."""
    g = graph_of(graph)
    g.require_cliques("a hypothesis of a structural posterior")
    if set(g.names) != set(task.graph.names):
        unmatched = sorted(set(g.names) ^ set(task.graph.names))
        expected = f"expected a graph over {list(task.graph.names)}; {unmatched} are in only one of the two"
        raise ValueError(f"{expected}: a hypothesis has the task's variables")
    equations: list[Equation] = []
    for clique in g.cliques:
        rest = _ordered([name for name in clique if name not in task.context], task)
        parents = _ordered([*g.parents(clique), *(name for name in clique if name in task.context)], task)
        equations += of_clique(rest, parents, task) if rest else ()
    return Hypothesis(g, tuple(equations))


def shared(hypotheses: Sequence[Hypothesis]) -> tuple[Equation, ...]:
    """All equations of the hypotheses, each once."""
    return tuple(dict.fromkeys(equation for hypothesis in hypotheses for equation in hypothesis.equations))


def _ordered(names: Sequence[str], task: RehearsalTask) -> tuple[str, ...]:
    # In the task's order, so that hypotheses with different orders share the same equation.
    return tuple(name for name in task.graph.names if name in set(names))


@dataclass(frozen=True)
class AffineScenarios:
    """K scenarios for B decision contexts: V_k = offset_k + gain_k z."""

    names: tuple[str, ...]  # The d variables, in order
    altered: tuple[str, ...]  # The k variables that are set
    offset: Tensor  # (B, K, d), each column in its variable's unit; zero for altered variables
    gain: Tensor  # (K, d, k), in all contexts; one for altered variables, zero for the context

    def only(self, names: Sequence[str]) -> "AffineScenarios":
        """The scenarios of some variables, in the given order; KeyError for unknown ones."""
        index = positions(self.names, names)
        return AffineScenarios(tuple(names), self.altered, self.offset[..., index], self.gain[..., index, :])

    def rows(self, actions: Tensor) -> Tensor:
        """All variables under actions, (..., B, k) -> (..., B, K, d)."""
        return self.offset + torch.einsum("sdk,...bk->...bsd", self.gain, actions.to(self.gain))


class SampledModels(ABC):
    """K equally likely models (G_k, theta_k) with noise, the same in all queries (common random numbers)."""

    @property
    @abstractmethod
    def graphs(self) -> Tensor:
        """Each model's hypothesis, (K,), ascending: the first few are not a representative sample."""

    @abstractmethod
    def scenarios(self, contexts: Tensor, altered: Sequence[str]) -> AffineScenarios:
        """The K scenarios of every variable, for contexts (B, |X|) in the task's order and `altered`, in the
        order of z, possibly empty. ValueError if one may not be altered.
        """

    @abstractmethod
    def log_density(self, rows: Tensor, altered: Sequence[str]) -> Tensor:
        """log p(v | G_k, theta_k, x, z), (..., K), of the variables that are neither context nor altered, in
        nats per product of their units, at rows (..., d) in the order of the task's graph.
        """

    @abstractmethod
    def entropy(self, altered: Sequence[str]) -> Tensor:
        """The entropy of that density, (K,), which depends on neither x nor z."""


class ScenarioModel(RehearsalSurrogate, ABC):
    """A surrogate from which rehearsal models are sampled; its task's graph names the variables, in order."""

    @abstractmethod
    def graph_weights(self) -> Tensor:
        """p(G | D) of the hypotheses, (H,), summing to one."""

    @abstractmethod
    def sampled(self, count: int, seed: int = 0) -> SampledModels:
        """`count` models from the posterior, graphs in proportion to their weights."""
