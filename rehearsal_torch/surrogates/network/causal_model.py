"""Causal models: the surrogate interface of causal Bayesian optimisation, and networks, snapshots of it.

In a fitted model every node has a mechanism x = g(w, u) of its inputs w (parents and actions) and of noise u
with a fitted distribution; g itself has a posterior mean and standard deviation. A *network* is a snapshot of
the model with all factors cached: it propagates fixed noise samples through the graph,

    x_i = m_i(w_i, u_i) + e_i s_i(w_i, u_i),       i in topological order,

where m_i and s_i are posterior mean and standard deviation of g_i, and e_i is the perturbation in standard
deviations: 0 (the posterior mean), normal samples (epistemic draws), or an optimistically chosen number in
[-beta, beta]. The result is differentiable in the actions. Objectives use it for confidence bounds, expected
improvement and optimism; `surrogates.counterfactual` to abduct, sample and replay.

A node that is set directly (a hard intervention) takes the given value and its mechanism is ignored; its
descendants change, its ancestors do not.

Source: Ren et al. (2025), Sec. 2.2, 4.1, 5.1 and Eq. 5; Sussex et al. (2023), Sec. 4 (plausible models);
Astudillo and Frazier (2021).
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

# (index of the node, its inputs in or near [0, 1] (..., S or 1, p)) -> the node's perturbation in posterior
# standard deviations, broadcastable to (..., S).
Perturbation = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class CausalNetwork:
    """The mechanisms of all nodes, in the task's order: a snapshot of a causal model."""

    task: CausalTask
    mechanisms: tuple[NodeMechanism, ...]

    @property
    def device(self) -> torch.device:
        """Where it computes: that of the model when the snapshot was made."""
        return self.mechanisms[0].device

    def propagate(
        self,
        actions: Tensor,  # (..., k), in their units
        noise: Tensor,  # (S, N), the same samples for all actions (`CausalModel.draws`); or (..., S, N)
        perturbation: Perturbation | None = None,  # deviations from posterior means
        spread: Sequence[str] = (),  # Nodes whose posterior standard deviation is returned as well
        # Nodes that are set to a value (hard interventions), each broadcastable to (..., S); their mechanisms
        # are ignored
        fixed: Mapping[str, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Propagates noise through the graph under actions.

        Returns:
            Node values (..., S, N), and for each node in `spread` its posterior standard deviation,
                broadcastable to (..., S).
        """
        known = {name: actions[..., index, None] for index, name in enumerate(self.task.actions)}
        spreads: dict[str, Tensor] = {}
        for index, (node, mechanism) in enumerate(zip(self.task.nodes, self.mechanisms, strict=True)):
            if fixed is not None and node in fixed:
                known[node] = fixed[node]
                continue
            scaled = mechanism.scaled(self._inputs(node, known, (*actions.shape[:-1], 1)))
            given = noise[..., index].unsqueeze(-1)
            if perturbation is None and node not in spread:
                known[node] = mechanism.forward(scaled, given).squeeze(-1)
                continue
            value, std = (moment.squeeze(-1) for moment in mechanism.belief(scaled, given))
            known[node] = value if perturbation is None else value + perturbation(index, scaled) * std
            spreads[node] = std
        shape = (*actions.shape[:-1], noise.shape[-2])
        return torch.stack([known[node].expand(shape) for node in self.task.nodes], -1), {
            node: spreads[node] for node in spread if node in spreads
        }

    def experiments(self, actions: Tensor, epistemic: Tensor, noise: Tensor) -> Tensor:
        """The node values, (..., m, N), of m experiments with actions (..., m, k) on one plausible network:
        each node's function is drawn jointly at the inputs that the experiments reach, by normal draws (...,
        m, N), and each has a noise (..., m, N).
        """
        known = {name: actions[..., index].unsqueeze(-2) for index, name in enumerate(self.task.actions)}
        shape = torch.broadcast_shapes(actions.shape[:-1], noise.shape[:-1])
        for index, (node, mechanism) in enumerate(zip(self.task.nodes, self.mechanisms, strict=True)):
            scaled = mechanism.scaled(self._inputs(node, known, (*shape[:-1], 1, shape[-1])))
            given = noise[..., index].unsqueeze(-2).unsqueeze(-1)
            deviation = mechanism.joint_root(scaled, given) @ epistemic[..., index].unsqueeze(-2).unsqueeze(
                -1
            )
            known[node] = (mechanism.belief(scaled, given)[0] + deviation).squeeze(-1)
        return torch.stack([known[node].squeeze(-2).expand(shape) for node in self.task.nodes], -1)

    def as_fitted(self) -> "CausalNetwork":
        """The network with `NodeMechanism.as_fitted`: by it actions to try are searched."""
        return CausalNetwork(self.task, tuple(mechanism.as_fitted() for mechanism in self.mechanisms))

    def conditioned(self, actions: Tensor, values: Tensor) -> "CausalNetwork":
        """The network after m further experiments with actions (..., m, k) and node values (..., m, N), with
        its parameters as fitted. Leading dimensions are those of several sets of experiments, against which
        those of later actions, before the last two, broadcast. TypeError if a mechanism cannot be
        conditioned.
        """
        known = {name: actions[..., index].unsqueeze(-2) for index, name in enumerate(self.task.actions)}
        known |= {node: values[..., index].unsqueeze(-2) for index, node in enumerate(self.task.nodes)}
        shape = (*values.shape[:-2], 1, values.shape[-2])
        mechanisms = []
        for node, mechanism in zip(self.task.nodes, self.mechanisms, strict=True):
            inputs = mechanism.scaled(self._inputs(node, known, shape))
            mechanisms.append(mechanism.conditioned(inputs, known[node].unsqueeze(-1)))
        return CausalNetwork(self.task, tuple(mechanisms))

    def _inputs(self, node: str, known: Mapping[str, Tensor], shape: Sequence[int]) -> Tensor:
        """A node's inputs (..., p); of a node without any, (*shape, 0)."""
        names = self.task.inputs(node)
        if not names:
            return next(iter(known.values())).new_empty(*shape, 0)
        return torch.stack(torch.broadcast_tensors(*(known[name] for name in names)), -1)

    def reward(self, values: Tensor) -> Tensor:
        """The known reward of node values, (..., N) -> (...)."""
        return self.task.reward(values[..., [self.task.nodes.index(name) for name in self.task.reward.names]])


class CausalModel(Surrogate, ABC):
    """A surrogate that learns a network from experiments, given graph, actions, nodes and reward."""

    kind: Kind | None = "optimise"

    def __init__(self, task: CausalTask) -> None:
        super().__init__()
        self.task = CausalTask.of(task)

    def question(self) -> Question:
        """The task."""
        return self.task

    def used(self) -> tuple[str, ...]:
        """Everything but bounds and limits; models that do not learn the reward itself remove "reward"."""
        return ("graph", "actions", "nodes", "reward")

    def _take(self, question: Question) -> None:
        self.task = CausalTask.of(question)  # type: ignore[arg-type]

    @abstractmethod
    def network(self) -> CausalNetwork:
        """A snapshot of the model; factors are computed once, here."""

    @abstractmethod
    def draws(self, count: int, seed: int = 0) -> Tensor:
        """Noise of all nodes, (S, N): scrambled Sobol points through the fitted quantile functions."""

    @abstractmethod
    def visited(self) -> Tensor:
        """The actions of the experiments so far, (n, k), in their units."""

    def condition(self, table: Table) -> None:
        """Conditions the model on a table of observations, with hyper-parameters unchanged. The default
        refits it; models with a cheaper update override this. TypeError if a part has no `solve`.
        """
        for part, examples in self.parts(table.to(self.device)):
            if not isinstance(part, Solved):
                expected = f"expected parts that are solved; {type(part).__name__} is trained by gradients"
                raise TypeError(f"{expected}: use fitting=solve")
            part.solve(*examples)
