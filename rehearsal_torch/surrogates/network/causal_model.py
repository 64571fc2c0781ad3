"""Causal models: what causal Bayesian optimisation asks of a surrogate.

Fitted, every node has a mechanism x = g(w, u) of its inputs w (parents and actions) and of a noise u whose
distribution was learnt; g itself is known up to a standard deviation. A *network* is the model at one moment,
with all factors cached: it carries fixed draws of the noise through the graph,

    x_i = m_i(w_i, u_i) + e_i s_i(w_i, u_i),       i in topological order,

where m_i and s_i are posterior mean and standard deviation of g_i, and e_i how far it is pushed: 0 (the
mean), normal draws (a sample), or a number in [-beta, beta] that is chosen to be optimistic. All of it is
differentiable in the actions.

Two users of each answer: objectives (confidence bounds, improvement, optimism), and questions to a fitted
model (samples, interventions, counterfactuals).

Source: Ren et al. (2025), Sec. 5.1 and Eq. 5; Sussex et al. (2023), Sec. 4 (plausible models); Astudillo and
Frazier (2021).

Questions to a fitted causal network: what would come out, and what would have come out.

    recover          u = g^-1(w, x)                                    the noise that each row had
    sample           x_i = g_i(w_i, u_i), u fresh                      under any actions (soft interventions
                     on their children)
    counterfactual   x_i' = g_i(w_i', u_i), u recovered                the same row under other actions, or
                     with nodes set by hand

A node that is set by hand (a hard intervention) takes its value and leaves its law out; what follows from it
changes, what it follows from does not.

Source: Ren et al. (2025), Sec. 2.2 and 4.1; Tsirtsis and Gomez-Rodriguez (2023), Eq. 6 (abduction, action,
prediction).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.part import Solved
from rehearsal_torch.data.question import Kind, Question
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.mechanism import NodeMechanism
from rehearsal_torch.surrogates.surrogate import Surrogate

# (node's place, its inputs in [0, 1] or nearly so (..., S or 1, p)) -> how many standard deviations it is
# pushed, to be broadcast to (..., S).
Perturbation = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class CausalNetwork:
    """The mechanisms of all nodes, at one moment.

    Attributes:
        task: Whose nodes they are; without its structure where the surrogate ignores it.
        mechanisms: One for each node, in the task's (topological) order.
    """

    task: CausalTask
    mechanisms: tuple[NodeMechanism, ...]

    def propagate(
        self,
        actions: Tensor,
        noise: Tensor,
        perturbation: Perturbation | None = None,
        spread: Sequence[str] = (),
        fixed: Mapping[str, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Carries noise through the graph under actions.

        Args:
            actions: (..., k), in their units.
            noise: (S, N), the same draws for all actions, as `CausalModel.draws` gives them; or (..., S, N).
            perturbation: How far each node is pushed from its posterior mean; None for the posterior mean
                itself.
            spread: Nodes whose standard deviation is wanted as well.
            fixed: Nodes that are set to a value (hard interventions), each broadcastable to (..., S); their
                law is left out.

        Returns:
            Node values (..., S, N), and for each node in `spread` its standard deviation, broadcastable to
            (..., S).
        """
        known = {name: actions[..., place, None] for place, name in enumerate(self.task.actions)}
        spreads: dict[str, Tensor] = {}
        for place, (node, mechanism) in enumerate(zip(self.task.nodes, self.mechanisms, strict=True)):
            if fixed is not None and node in fixed:
                known[node] = fixed[node]
                continue
            names = self.task.inputs(node)
            inputs = (
                torch.stack(torch.broadcast_tensors(*(known[name] for name in names)), -1)
                if names
                else actions.new_empty(*actions.shape[:-1], 1, 0)
            )
            scaled, own = mechanism.scaled(inputs), noise[..., place].unsqueeze(-1)
            if perturbation is None and node not in spread:
                known[node] = mechanism.forward(scaled, own).squeeze(-1)
                continue
            value, std = (each.squeeze(-1) for each in mechanism.belief(scaled, own))
            known[node] = value if perturbation is None else value + perturbation(place, scaled) * std
            spreads[node] = std
        shape = (*actions.shape[:-1], noise.shape[-2])
        return torch.stack([known[node].expand(shape) for node in self.task.nodes], -1), {
            node: spreads[node] for node in spread if node in spreads
        }

    def reward(self, values: Tensor) -> Tensor:
        """The known reward of node values, (..., N) -> (...)."""
        return self.task.reward(values[..., [self.task.nodes.index(name) for name in self.task.reward.names]])


class CausalModel(Surrogate, ABC):
    """A surrogate that learns a network from a table of experiments.

    Args:
        task: Who follows from whom; plain data or a CausalTask.
    """

    kind: Kind | None = "optimise"

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
        """Noise of all nodes of the network, (S, N), S = count: scrambled Sobol points through the learnt
        distributions.
        """

    @abstractmethod
    def visited(self) -> Tensor:
        """The actions that have been tried, (n, k), in their units."""

    def condition(self, table: Table) -> None:
        """Takes a table for what has been observed, hyper-parameters as they are; by default it is fitted
        anew, models with a cheaper way replace this.

        Raises:
            TypeError: if a part has no solution of its own.
        """
        for part, examples in self.parts(table):
            if not isinstance(part, Solved):
                raise TypeError(
                    f"expected parts that are solved; {type(part).__name__} is trained by gradients: use "
                    "fitting=solve"
                )
            part.solve(*examples)


@torch.no_grad()
def recover(network: CausalNetwork, table: Table) -> Tensor:
    """The noise of every node in every row, (n, N).

    Raises:
        KeyError: if a node has no column.
    """
    found = []
    for node, mechanism in zip(network.task.nodes, network.mechanisms, strict=True):
        inputs, values = table.columns(network.task.inputs(node)).double(), table.columns([node]).double()
        found.append(mechanism.abduct(mechanism.scaled(inputs), values).squeeze(-1))
    return torch.stack(found, -1)


@torch.no_grad()
def sample(
    model: CausalModel, actions: Tensor, count: int, seed: int = 0, fixed: Mapping[str, float] | None = None
) -> Tensor:
    """Draws of all nodes under actions (..., k), (..., count, N) in the order of the network's nodes:
    interventions' distributions.

    Args:
        model: Fitted.
        actions: In their units.
        count: Draws for each action; the same noise for all actions.
        seed: Decides the noise.
        fixed: Nodes that are set by hand, name to value.

    Raises:
        ValueError: if something is set by hand that is no node.
    """
    network = model.network()
    return network.propagate(actions, model.draws(count, seed), fixed=_set(network, fixed, actions))[0]


@torch.no_grad()
def counterfactual(
    network: CausalNetwork,
    table: Table,
    actions: Mapping[str, float] | None = None,
    fixed: Mapping[str, float] | None = None,
) -> Table:
    """What the rows would have been: abduction of their noise, then other actions or hard interventions, then
    prediction.

    Args:
        network: Of a fitted model.
        table: What was observed, every node and action.
        actions: Actions that change, name to value; the others stay as they were.
        fixed: Nodes that are set by hand, name to value.

    Returns:
        The actions and nodes of the network, one row for each row of `table`; what was set by hand is marked.

    Raises:
        ValueError: if a name is no action or no node.
    """
    unknown = [name for name in actions or {} if name not in network.task.actions]
    if unknown:
        raise ValueError(
            f"{unknown} are no actions; there are {list(network.task.actions)}: set nodes by hand with "
            "`fixed`"
        )
    noise, other = recover(network, table), table.columns(network.task.actions).double().clone()
    for name, value in (actions or {}).items():
        other[:, network.task.actions.index(name)] = value
    nodes = network.propagate(other, noise.unsqueeze(-2), fixed=_set(network, fixed, other))[0][..., 0, :]
    names = (*network.task.actions, *network.task.nodes)
    values = torch.cat([other, nodes], -1)
    altered = torch.tensor([name in network.task.actions or name in (fixed or {}) for name in names]).expand(
        values.shape
    )
    return Table(names, values, altered.to(values.device).clone())


def _set(network: CausalNetwork, fixed: Mapping[str, float] | None, like: Tensor) -> dict[str, Tensor] | None:
    unknown = [name for name in fixed or {} if name not in network.task.nodes]
    if unknown:
        raise ValueError(f"{unknown} are no nodes of this model; it has {list(network.task.nodes)}")
    return (
        None
        if fixed is None
        else {
            name: torch.full((1,), float(value), dtype=torch.float64, device=like.device)
            for name, value in fixed.items()
        }
    )
