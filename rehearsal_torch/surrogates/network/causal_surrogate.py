"""Causal models (structural causal models with Gaussian-process mechanisms): interface and network snapshots.

In a fitted model every node has a mechanism x = g(w, u) of its inputs w (parents and actions) and of noise u
with a fitted distribution; g itself has a posterior mean and standard deviation. A *network* is a snapshot of
the model with all factors cached: it propagates fixed noise samples through the graph,

    x_i = m_i(w_i, u_i) + e_i s_i(w_i, u_i),       i in topological order,

where m_i and s_i are posterior mean and standard deviation of g_i, and e_i is the perturbation in standard
deviations: 0 (the posterior mean), normal samples (epistemic draws), or an optimistically chosen number in
[-beta, beta]. The result is differentiable in the actions. Objectives use it for confidence bounds, expected
improvement and optimism; `surrogates.structural_counterfactuals` to abduct, sample and replay.

A context is an input like an action, and k counts both: it has no mechanism, but enters those of others.

A node that is set directly (a hard intervention), by its value among the settings where it is settable, takes
the given value and its mechanism is ignored; its descendants change, its ancestors do not.

Source: Ren et al. (2025), Sec. 2.2, 4.1, 5.1 and Eq. 5; Sussex et al. (2023), Sec. 4 (plausible models);
Astudillo and Frazier (2021).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask, arising
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import Kind, Question
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.mechanisms.mechanism import NodeMechanism
from rehearsal_torch.mechanisms.plausible_mechanism import PlausibleMechanism
from rehearsal_torch.seeding import generator, sobol
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
        actions: Tensor,  # settings (..., k), actions and context in their units
        noise: Tensor,  # (S, N), the same samples for all actions (`CausalModel.draws`); or (..., S, N)
        perturbation: Perturbation | None = None,  # deviations from posterior means
        spread: Sequence[str] = (),  # nodes whose posterior standard deviation is returned as well
        fixed: Mapping[str, Tensor] | None = None,  # hard interventions, broadcastable to (..., S)
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Propagates noise through the graph under actions.

        Returns:
            Node values (..., S, N), and for each node in `spread` its posterior standard deviation,
                broadcastable to (..., S).
        """
        x = {name: actions[..., index, None] for index, name in enumerate(self.task.settings)}
        spreads: dict[str, Tensor] = {}
        for index, (node, mechanism) in enumerate(zip(self.task.nodes, self.mechanisms, strict=True)):
            if fixed is not None and node in fixed:
                x[node] = fixed[node]
                continue
            scaled = mechanism.scaled(inputs_of(self.task, node, x, (*actions.shape[:-1], 1)))
            node_noise = noise[..., index].unsqueeze(-1)
            if perturbation is None and node not in spread:
                settle(x, node, mechanism.forward(scaled, node_noise).squeeze(-1))
                continue
            value, std = (moment.squeeze(-1) for moment in mechanism.belief(scaled, node_noise))
            settle(x, node, value if perturbation is None else value + perturbation(index, scaled) * std)
            spreads[node] = std
        shape = (*actions.shape[:-1], noise.shape[-2])
        values = torch.stack([x[node].expand(shape) for node in self.task.nodes], -1)
        return values, {node: spreads[node] for node in spread if node in spreads}

    def reward(self, values: Tensor) -> Tensor:
        """The known reward of node values, (..., N) -> (...)."""
        return reward_of(self.task, values)


@dataclass(frozen=True)
class PlausibleNetworks:
    """E networks that are plausible given the experiments."""

    task: CausalTask
    mechanisms: tuple[PlausibleMechanism, ...]
    size: int  # E, in mirrored pairs

    def propagate(
        self, actions: Tensor, noise: Tensor, fixed: Mapping[str, Tensor] = MappingProxyType({})
    ) -> Tensor:
        """Node values x (E, *b, q, S, N) under actions (*b, q, k) in units, and noise (S, N) or like x; nodes
        `fixed` at values that expand to (1, *b, q, 1).
        """
        x = {name: actions[..., index, None].unsqueeze(0) for index, name in enumerate(self.task.settings)}
        for index, (node, mechanism) in enumerate(zip(self.task.nodes, self.mechanisms, strict=True)):
            if node in fixed:
                settle(x, node, fixed[node].expand(1, *actions.shape[:-1], 1))
                continue
            inputs = inputs_of(self.task, node, x, (1, *actions.shape[:-1], 1))
            settle(x, node, mechanism(inputs, noise[..., index]))
        shape = (self.size, *actions.shape[:-1], noise.shape[-2])
        return torch.stack([x[node].expand(shape) for node in self.task.nodes], -1)

    def few(self, count: int) -> "PlausibleNetworks":
        """The first pairs, an even number of networks."""
        return replace(self, mechanisms=tuple(mech.few(count) for mech in self.mechanisms), size=count)

    def tabulated(self) -> "PlausibleNetworks":
        """An approximation by tables that is faster to evaluate."""
        return replace(self, mechanisms=tuple(mech.tabulated() for mech in self.mechanisms))

    def conditioned(
        self, actions: Tensor, values: Tensor, seed: int, known: Collection[str] = ()
    ) -> "PlausibleNetworks":
        """The networks after m experiments, actions (*b, m, k) and values (*b, m, N), of which nothing is
        learnt for nodes that are `known`; or TypeError.
        """
        if self.task.settable:
            raise TypeError("expected a task without settable nodes: fit the model to all experiments")
        x = {name: actions[..., index] for index, name in enumerate(self.task.settings)}
        x |= {node: values[..., index] for index, node in enumerate(self.task.nodes)}
        shape = broadcast(actions.shape[:-1], values.shape[:-1])
        mechanisms = []
        for index, (node, mechanism) in enumerate(zip(self.task.nodes, self.mechanisms, strict=True)):
            if node in known:
                mechanisms.append(mechanism)
                continue
            inputs = inputs_of(self.task, node, x, shape).expand(*shape, -1)
            mechanisms.append(mechanism.conditioned(inputs, x[node].expand(shape), seed + index))
        return replace(self, mechanisms=tuple(mechanisms))

    def reward(self, values: Tensor) -> Tensor:
        """The known reward of node values, (..., N) -> (...)."""
        return reward_of(self.task, values)


def settle(known: dict[str, Tensor], node: str, value: Tensor) -> None:
    """Adds the value of a node, unless it is set: its setting, NaN if it is not, is known in its place."""
    setting, known[arising(node)] = known.get(node), value
    known[node] = value if setting is None else torch.where(setting.isnan(), value, setting)


def broadcast(*shapes: Sequence[int]) -> torch.Size:
    """As `torch.broadcast_shapes`, which imports a compiler at its first call."""
    return torch.Size(np.broadcast_shapes(*map(tuple, shapes)))


def inputs_of(task: CausalTask, node: str, known: Mapping[str, Tensor], shape: Sequence[int]) -> Tensor:
    """A node's inputs as its mechanism takes them (..., p), or (*shape, 0) without any."""
    inputs = [column for name in task.inputs(node) for column in task.features(name, known[name])]
    if not inputs:
        return next(iter(known.values())).new_empty(*shape, 0)
    return torch.stack(torch.broadcast_tensors(*inputs), -1)


def inputs_in(task: CausalTask, node: str, table: Table) -> Tensor:
    """A node's inputs in the rows of a table, (n, p)."""
    known = {name: task.cells(table, (name,))[:, 0].double() for name in task.inputs(node)}
    return inputs_of(task, node, known or {"": table.values.double()}, (len(table),))


def reward_of(task: CausalTask, values: Tensor) -> Tensor:
    """A task's known reward of node values, (..., N) -> (...)."""
    return task.reward(values[..., [task.nodes.index(name) for name in task.reward.names]])


def error_variances(task: CausalTask, scales: Tensor) -> Tensor:
    """Known variances of the N nodes' measurement errors, 0 if unknown, in units of their scales, (N,)."""
    return (scales.new_tensor([task.errors.get(node, 0.0) for node in task.nodes]) / scales).square()


SMALL = 1e-9  # smallest probability of a normal draw


def standard_draws(count: int, width: int, seed: int) -> Tensor:
    """Normal Sobol draws (count, width) in random order with mirror images; ValueError for odd counts."""
    require(count >= 2 and count % 2 == 0, "an even number of draws, in mirrored pairs", count=count)
    draws = torch.zeros(count // 2, 0, dtype=torch.float64)
    if width:
        uniform = sobol(width, seed).draw(count // 2, dtype=torch.float64)
        order = torch.randperm(count // 2, generator=generator(seed))
        draws = torch.special.ndtri(uniform[order].clamp(SMALL, 1 - SMALL))
    mirrored = torch.cat([draws, -draws])
    return mirrored / mirrored.square().mean(0).sqrt().clamp_min(1e-12)


class VisitedActions(Solved):
    """The k settings of the experiments, and which have a reward; an unknown context is the others' mean."""

    def __init__(self, task: CausalTask) -> None:
        super().__init__()
        self.register_fitted(actions=("n", len(task.settings)), finite=not task.settable)
        self.register_fitted(finished=("n",), source=True)
        self.settable = [task.settings.index(name) for name in task.settable]

    def solve(self, *examples: Tensor) -> None:
        """Stores settings (n, k), and the rewards (n,) that are numbers as ones."""
        settings = examples[0].detach().double()
        means = settings.nanmean(0)
        means[self.settable] = torch.nan
        self.actions = torch.where(settings.isnan(), means, settings)
        self.finished = (~examples[1].isnan()).double()


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
    def plausible(self, members: int, seed: int = 0) -> PlausibleNetworks:
        """E (even) networks that are plausible given the experiments."""

    @abstractmethod
    def draws(self, count: int, seed: int = 0) -> Tensor:
        """Noise of all nodes, (S, N): scrambled Sobol points through the fitted quantile functions."""

    @abstractmethod
    def visited(self) -> Tensor:
        """The settings of the experiments with a reward, (n, k), actions and context in their units."""

    def contradicted(self) -> tuple[str, ...]:
        """The nodes whose mechanisms the experiments contradict; none by default."""
        return ()

    def condition(self, table: Table) -> None:
        """Conditions on a table, by default by refitting parts; TypeError if a part has no `solve`."""
        for part, examples in self.parts(table.to(self.device)):
            if not isinstance(part, Solved):
                expected = f"expected parts that are solved; {type(part).__name__} is trained by gradients"
                raise TypeError(f"{expected}: use fitting=solve")
            part.solve(*examples)
