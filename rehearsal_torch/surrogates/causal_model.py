"""Causal models: what causal Bayesian optimisation asks of a surrogate.

Fitted, every node has a law x = g(w, u) of its inputs w (parents and actions) and of a noise u whose distribution was learnt;
g itself is known up to a standard deviation. A *network* is the model at one moment, with all factors cached: it carries fixed
draws of the noise through the graph,

    x_i = m_i(w_i, u_i) + e_i s_i(w_i, u_i),       i in topological order,

where m_i is the best guess of g_i, s_i what is not known of it, and e_i how far it is pushed: 0 (the mean), normal draws (a
sample), or a number in [-beta, beta] that is chosen to be optimistic. All of it is differentiable in the actions.

Two users of each answer: objectives (confidence bounds, improvement, optimism), and questions to a fitted model (samples,
interventions, counterfactuals).

Source: Ren et al. (2025), Sec. 5.1 and Eq. 5; Sussex et al. (2023), Sec. 4 (plausible models); Astudillo and Frazier (2021).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.fitted import Solved
from rehearsal_torch.data.question import Question
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.surrogate import Surrogate

# (node's place, its inputs in [0, 1] or nearly so (..., S or 1, p)) -> how many standard deviations it is pushed, to be broadcast to (..., S).
Push = Callable[[int, Tensor], Tensor]


class NodeLaw(ABC):
    """How one node follows from its p inputs and its noise, as learnt by now."""

    @abstractmethod
    def scaled(self, inputs: Tensor) -> Tensor:
        """Inputs from the variables' units to the unit cube (beyond it outside the data), (..., p) -> (..., p)."""

    @abstractmethod
    def guess(self, scaled: Tensor, noise: Tensor) -> Tensor:
        """The best guess of g, (..., p), (...) -> (...), in the node's unit; leading dimensions are broadcast."""

    @abstractmethod
    def believed(self, scaled: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The best guess and the standard deviation of what is not known of g, (..., p), (...) -> (...), (...), in the node's unit."""

    @abstractmethod
    def abduct(self, scaled: Tensor, values: Tensor) -> Tensor:
        """The noise under which the node has these values, (..., p), (...) -> (...)."""


@dataclass(frozen=True)
class CausalNetwork:
    """The laws of all nodes, at one moment.

    Attributes:
        task: Whose nodes they are; without its structure where the surrogate ignores it.
        laws: One a node, in the task's (topological) order.
    """

    task: CausalTask
    laws: tuple[NodeLaw, ...]

    def propagate(
        self,
        actions: Tensor,
        noise: Tensor,
        push: Push | None = None,
        spread: Sequence[str] = (),
        fixed: Mapping[str, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Carries noise through the graph under actions.

        Args:
            actions: (..., k), in their units.
            noise: (S, N), the same draws for all actions, as `CausalModel.draws` gives them; or (..., S, N).
            push: How far each node is pushed from the best guess; None for the best guess itself.
            spread: Nodes whose standard deviation is wanted as well.
            fixed: Nodes that are set to a value (hard interventions), each broadcastable to (..., S); their law is left out.

        Returns:
            Node values (..., S, N), and for each node in `spread` its standard deviation, broadcastable to (..., S).
        """
        known = {name: actions[..., place, None] for place, name in enumerate(self.task.actions)}
        spreads: dict[str, Tensor] = {}
        for place, (node, law) in enumerate(zip(self.task.nodes, self.laws, strict=True)):
            if fixed is not None and node in fixed:
                known[node] = fixed[node]
                continue
            names = self.task.inputs(node)
            inputs = torch.stack(torch.broadcast_tensors(*(known[name] for name in names)), -1) if names else actions.new_empty(*actions.shape[:-1], 1, 0)
            scaled = law.scaled(inputs)
            if push is None and node not in spread:
                known[node] = law.guess(scaled, noise[..., place])
                continue
            value, deviation = law.believed(scaled, noise[..., place])
            known[node] = value if push is None else value + push(place, scaled) * deviation
            spreads[node] = deviation
        shape = (*actions.shape[:-1], noise.shape[-2])
        return torch.stack([known[node].expand(shape) for node in self.task.nodes], -1), {node: spreads[node] for node in spread if node in spreads}

    def reward(self, values: Tensor) -> Tensor:
        """The known reward of node values, (..., N) -> (...)."""
        return self.task.reward(values[..., [self.task.nodes.index(name) for name in self.task.reward.names]])


class CausalModel(Surrogate, ABC):
    """A surrogate that learns a network from a table of experiments.

    Args:
        task: Who follows from whom; plain data or a CausalTask.
    """

    def __init__(self, task: CausalTask) -> None:
        super().__init__()
        self.task = CausalTask.of(task)

    def question(self) -> Question:
        """Its task."""
        return self.task

    def used(self) -> tuple[str, ...]:
        """All but bounds and limits; a model that does not learn the reward itself takes "reward" out."""
        return ("graph", "actions", "nodes", "reward")

    def _take(self, question: Question) -> None:
        self.task = CausalTask.of(question)  # type: ignore[arg-type]

    @abstractmethod
    def network(self) -> CausalNetwork:
        """The model as it is now; factors are computed once, here."""

    @abstractmethod
    def draws(self, count: int, seed: int = 0) -> Tensor:
        """Noise of all nodes of the network, (S, N), S = count: scrambled Sobol points through the learnt distributions."""

    @abstractmethod
    def visited(self) -> Tensor:
        """The actions that have been tried, (n, k), in their units."""

    def condition(self, table: Table) -> None:
        """Takes a table for what has been observed, hyper-parameters as they are; by default it is fitted anew, models with a cheaper way replace this.

        Raises:
            TypeError: if a part has no solution of its own.
        """
        for part, examples in self.parts(table):
            if not isinstance(part, Solved):
                raise TypeError(f"expected parts that are solved; {type(part).__name__} is trained by gradients: use fitting=solve")
            part.solve(*examples)
