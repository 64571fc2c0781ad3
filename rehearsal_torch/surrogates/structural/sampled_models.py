"""Sampled rehearsal models: what a method that reasons by samples asks of a surrogate.

What is not known of a world is its graph G, its parameters theta, and the noise eps to come. From a law of
(G, theta) a surrogate samples K models with a noise each. In sample k, every variable is affine in what is
set,

    V_k(x, z) = offset_k(x) + slope_k z,

a *scenario*; the outcomes are among the variables. Given (G_k, theta_k) alone, what is neither context nor
altered has a density that factorises over cliques; its entropy depends on neither x nor z where the noise is
normal with a covariance of its own. Hence the information that a row carries about the model,

    I(G, theta; V | x, z) = E_k log p(V_k | G_k, theta_k, x, z) - E_k log (1 / K) sum_j p(V_k | G_j, theta_j,
    x, z),

needs `SampledModels.log_density` alone.

Two users: the posterior over graphs and parameters (`structural_posterior`) answers it; searches and
objectives of Qin et al. (2023) ask it.

Source: Qin et al. (2023), Sec. 4.1, Prop. 5 (Eq. 8), Eq. 9 and App. C.

Hypotheses: rehearsal graphs that may be true, and the equations that each needs.

The context is seen before anything is set, so that X comes before Z before Y. A hypothesis that says
otherwise (a graph that data alone cannot tell from the others may) keeps its edges among the rest; arrows
into the context are cut, and how the context comes about is nobody's business: graphs that differ there alone
foresee the same. Members of the context stand in a clique as parents of the others.

Equations that two hypotheses share are one equation, learnt once.

Source: Qin et al. (2023), Sec. 2 (alteration graphs), Sec. 3 (X, Z, Y), Prop. 4 (differences in X do not
matter).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import positions
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.structural.linear_scm import Equation


@dataclass(frozen=True)
class Hypothesis:
    """A graph and its equations.

    Attributes:
        graph: As it was named.
        equations: One for each clique outside the context, and for each set of its members that may be
            altered without the rest; parents before children.
    """

    graph: RehearsalGraph
    equations: tuple[Equation, ...]

    def under(self, altered: Sequence[str]) -> list[Equation]:
        """The equations that hold when `altered` is set from outside, parents before children."""
        cut = set(altered)
        return [each for each in self.equations if set(each.altered) == cut & set(each.clique)]


def hypothesis_of(graph: RehearsalGraph | Mapping[str, Any], task: RehearsalTask) -> Hypothesis:
    """The equations of a graph for a task.

    Args:
        graph: A graph, or plain data as `graph_of` reads them: {cliques, edges} or {parents, bidirected}.
        task: Who plays which part.

    Raises:
        ValueError: if it is no rehearsal graph, or its variables are not the task's.
    """
    made = graph_of(graph)
    made.require_cliques("a hypothesis of a structural posterior")
    if set(made.names) != set(task.graph.names):
        odd = sorted(set(made.names) ^ set(task.graph.names))
        raise ValueError(
            f"expected a graph over {list(task.graph.names)}; {odd} stand in one of the two alone: a "
            "hypothesis has the task's variables"
        )
    found = []
    for clique in made.cliques:
        rest = tuple(_sorted([name for name in clique if name not in task.context], task))
        if not rest:
            continue
        parents = _sorted([*made.parents(clique), *(name for name in clique if name in task.context)], task)
        free = [name for name in rest if name in task.box.names]
        found.append(Equation(rest, (), rest, parents))
        for size in range(1, min(len(free) + 1, len(rest))):
            found += [
                Equation(rest, chosen, tuple(n for n in rest if n not in chosen), (*parents, *chosen))
                for chosen in combinations(free, size)
            ]
    return Hypothesis(made, tuple(found))


def hypotheses_of(
    graphs: Sequence[RehearsalGraph | Mapping[str, Any]] | None, task: RehearsalTask
) -> tuple[Hypothesis, ...]:
    """The hypotheses of a list of graphs; the task's own graph where there are none."""
    return tuple(hypothesis_of(graph, task) for graph in graphs or [task.graph])


def shared(hypotheses: Sequence[Hypothesis]) -> tuple[Equation, ...]:
    """Every equation of any hypothesis, each once."""
    return tuple(dict.fromkeys(each for one in hypotheses for each in one.equations))


def _sorted(names: Sequence[str], task: RehearsalTask) -> tuple[str, ...]:
    # In the task's order, so that hypotheses with other orders find the same equation.
    return tuple(name for name in task.graph.names if name in set(names))


@dataclass(frozen=True)
class AffineScenarios:
    """K scenarios for B situations: V_k = offset_k + slope_k z.

    Attributes:
        names: The d variables, in order.
        altered: The k variables that are set.
        offset: (B, K, d), each column in its variable's unit; zero for what is set.
        gain: (K, d, k), the same in all situations; the unit matrix for what is set, zero for the context.
    """

    names: tuple[str, ...]
    altered: tuple[str, ...]
    offset: Tensor
    gain: Tensor

    def only(self, names: Sequence[str]) -> "AffineScenarios":
        """The scenarios of some variables, such as the outcomes, in the order asked for.

        Raises:
            KeyError: for a variable that the scenarios do not have.
        """
        place = positions(self.names, names)
        return AffineScenarios(tuple(names), self.altered, self.offset[..., place], self.gain[..., place, :])

    def rows(self, actions: Tensor) -> Tensor:
        """What happens under actions, (..., B, k) -> (..., B, K, d)."""
        return self.offset + torch.einsum("sdk,...bk->...bsd", self.gain, actions.to(self.gain))


class SampledModels(ABC):
    """K models (G_k, theta_k), equally likely, with the noise of a scenario each.

    All questions are about the same K models and the same noise: what differs between alterations and
    situations is not chance.
    """

    @property
    @abstractmethod
    def graphs(self) -> Tensor:
        """Which hypothesis each model's graph is, (K,), ascending: the models are sorted by graph, so a
        beginning of them is no sample.
        """

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
            rows: (..., d), every variable in the order of the task's graph; the context x and what is set, z,
                are read from it.
            altered: Which were set.

        Returns:
            (..., K), in nats per product of the variables' units.
        """

    @abstractmethod
    def entropy(self, altered: Sequence[str]) -> Tensor:
        """The entropy of that density, (K,), in the same nats: the mean of -log_density under model k,
        whatever x and z.
        """


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
