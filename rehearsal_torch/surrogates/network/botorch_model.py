"""A causal network as a BoTorch model: posterior, conditioning and fantasies through the graph.

The outputs are expectations over the noise: of the reward, and of any node under the actions,

    E_u[r(x(a, u))],      E_u[x_i(a, u)],

and `posterior` is their joint epistemic distribution at several actions: functions and hyper-parameters of
the mechanisms are drawn (`causal_model.PlausibleNetworks`). With `observation_noise=True` it is that of a
single experiment's reward and node values.

Approximations: noise distributions and scales count as known; the numbers of members and noise draws are
finite; further rows have normal noise, and leave the hyper-parameters unchanged; the noise of an experiment
is interpolated between 1,024 quantiles; `tabulated` mechanisms, for the search alone.

Acquisition functions ask for the joint posterior of a candidate and all baseline points, for every candidate
of a batch: the baseline is repeated, without gradients. `at_distinct` evaluates each distinct point once, in
blocks, and in the backward pass only points whose value has a gradient, with a graph that is freed block by
block, so that memory does not grow with the number of points. Up to two blocks are evaluated once, with their
graph.

Source: Balandat et al. (2020), Sec. 3 and App. A (models, fantasies); Astudillo and Frazier (2019), Eq. 1,
and (2021), Sec. 4 (function networks); Ren et al. (2025), Eq. 5; Chen et al. (2016), Sec. 3 (recomputation on
the way back).
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.models.transforms.input import InputTransform, ReversibleInputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.sampling.base import MCSampler
from torch import Tensor

from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.network.botorch_posterior import (
    ExperimentPosterior,
    NetworkPosterior,
    Read,
    in_pairs,
)
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel, PlausibleNetworks, broadcast

REWARD = "reward"


@dataclass(frozen=True)
class NetworkOutputs:
    """m outputs of a network with N nodes, "reward" or names of nodes; ValueError for other names."""

    network: PlausibleNetworks
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        outputs = {*self.nodes, REWARD}
        unknown = [name for name in self.names if name not in outputs]
        if unknown or not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"outputs: expected different names of {[REWARD, *self.nodes]}; got {list(self.names)}"
            )
        if REWARD in self.names and REWARD in self.nodes and not self._is_node(REWARD):
            raise ValueError(
                f"outputs: {REWARD!r} is a node of this task and not its reward: rename the node to have both"
            )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The N nodes."""
        return self.network.task.nodes

    @property
    def all_nodes(self) -> bool:
        """Whether the outputs are all nodes, in any order."""
        return set(self.names) == set(self.nodes)

    def only(self, places: Sequence[int]) -> "NetworkOutputs":
        """Some of the outputs, by index."""
        return NetworkOutputs(self.network, tuple(self.names[index] for index in places))

    def read(self, values: Tensor) -> Tensor:
        """The outputs of node values, (..., N) -> (..., m)."""
        indices = [self.nodes.index(name) if name in self.nodes else None for name in self.names]
        reward = self.network.reward
        return torch.stack([reward(values) if i is None else values[..., i] for i in indices], -1)

    def node_values(self, observations: Tensor) -> Tensor:
        """Node values (..., N) in the network's order; ValueError if a node is missing."""
        names = self.names if self.all_nodes else self.nodes
        alone = len(self.nodes) == 1 and self._is_node(self.nodes[0])
        if self.names == (REWARD,) and observations.shape[-1] == 1 and not (self.all_nodes or alone):
            raise ValueError(
                f"Y: expected the values of all nodes, {list(self.nodes)}; got one column: the reward alone "
                "does not say what its causes came out at: name the nodes in `outputs` and pass every one, "
                "or fit structure=black_box"
            )
        if observations.shape[-1] != len(self.nodes):
            expected = f"Y: expected {len(self.nodes)} columns, the values of the nodes {list(names)}"
            raise ValueError(f"{expected}; got {observations.shape[-1]}")
        return observations[..., [names.index(node) for node in self.nodes]]

    def _is_node(self, name: str) -> bool:
        """Whether the reward is this node."""
        reward = self.network.task.reward
        return isinstance(reward, WeightedSum) and reward.weights == {name: 1.0}


def observed(surrogate: CausalModel, nodes: Sequence[str], table: Table) -> Tensor:
    """The values of a network's nodes in a table, (n, N); of a network of the reward alone, the reward."""
    if set(nodes) <= set(surrogate.task.nodes):
        return table.columns(tuple(nodes)).double()
    return surrogate.task.reward_of(table).unsqueeze(-1).double()


KEPT, CHUNK = 2, 2**16  # blocks whose graph is retained; actions x members x noise draws in a block
PointValues = Callable[[Tensor], Tensor]  # (P, k) -> (E, P, m); of a summary (..., S, N) -> (..., m)


def at_distinct(function: PointValues, points: Tensor, size: int) -> Tensor:
    """A pointwise function at points (..., k), (E, ..., m), in blocks of `size`; once differentiable."""
    flat = points.reshape(-1, points.shape[-1])
    small = torch.is_grad_enabled() and points.requires_grad and len(flat) <= KEPT * size
    values: Tensor = function(flat) if small else _AtDistinct.apply(flat, function, size)
    return values.reshape(len(values), *points.shape[:-1], values.shape[-1])


class _AtDistinct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor, function: PointValues, size: int) -> Tensor:
        distinct, inverse = points.unique(dim=0, return_inverse=True)
        ctx.save_for_backward(points)
        ctx.function, ctx.size = function, size
        return torch.cat([function(block) for block in distinct.split(size)], 1)[:, inverse]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        (points,) = ctx.saved_tensors
        gradient = torch.zeros_like(points)
        for indices in (upstream != 0).any(-1).any(0).nonzero()[:, 0].split(ctx.size):
            with torch.enable_grad():
                inputs = points[indices].detach().requires_grad_()
                (gradient[indices],) = torch.autograd.grad(ctx.function(inputs), inputs, upstream[:, indices])
        return gradient, None, None


QUANTILES = 1024


@final
class NetworkModel(Model):
    """A fitted causal model for BoTorch's acquisition functions; computed in float64. `bounds` (2, k) are
    those of the actions in their units, and of the context in the experiments; `train_inputs` holds their
    settings, (..., n, k), in the units of X, or in their own if an input transform cannot be inverted.

    Args:
        surrogate: The fitted model; a snapshot of its network is taken on construction.
        outputs: The m outputs: "reward", or names of nodes.
        members: E, number of plausible networks; even, since they come in antithetic pairs.
        draws: S, noise draws over which each is averaged.
        fantasy_members: Members of each model that `fantasize` returns; even.
        seed: Seed of members and noise.
        table: The experiments, if an acquisition function reads `train_targets`.
        input_transform: From X to actions in their units; None if X is that.
        outcome_transform: From outputs of this model to the network's.

    Raises:
        ValueError: if an output is unknown or repeated, or a number is out of range.
    """

    def __init__(
        self,
        surrogate: CausalModel,
        outputs: Sequence[str] = (REWARD,),
        members: int = 64,
        draws: int = 16,
        fantasy_members: int = 8,
        seed: int = 0,
        table: Table | None = None,
        input_transform: InputTransform | None = None,
        outcome_transform: OutcomeTransform | None = None,
    ) -> None:
        super().__init__()
        if draws < 1 or min(members, fantasy_members) < 2 or members % 2 or fantasy_members % 2:
            raise ValueError(
                "expected at least 1 draw and even numbers of members; got "
                f"draws={draws}, members={members} and fantasy_members={fantasy_members}"
            )
        self.network: PlausibleNetworks = surrogate.plausible(members, seed + 1)
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        self._outputs = NetworkOutputs(self.network, names)
        self.surrogate, self.noise = surrogate, surrogate.draws(draws, seed)
        self.quantiles = surrogate.draws(QUANTILES, seed + 2).sort(0).values
        self.fantasy_members = fantasy_members
        box = surrogate.task.box
        lower, upper = box.lower.to(self.noise), box.upper.to(self.noise)
        if surrogate.task.context:
            known = surrogate.visited()[:, len(lower) :]
            lower, upper = torch.cat([lower, known.amin(0)]), torch.cat([upper, known.amax(0)])
        self.bounds = torch.stack([lower, upper])
        if input_transform is not None:
            self.input_transform = input_transform
        if outcome_transform is not None:
            self.outcome_transform = outcome_transform
        self._batch_shape, self._moving, self._seed = torch.Size(), False, seed + 3
        actions = surrogate.visited() if table is None else surrogate.task.settings_of(table).double()
        if isinstance(input_transform, ReversibleInputTransform):
            self.eval()
            actions = input_transform.untransform(actions)
        self.train_inputs: tuple[Tensor] = (actions.to(self.noise),)
        self._observed = None if table is None else observed(surrogate, self.nodes, table).to(self.noise)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The N nodes of the network, in the order of Y."""
        return self._outputs.nodes

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the m outputs."""
        return self._outputs.names

    @property
    def num_outputs(self) -> int:
        """m."""
        return len(self.outputs)

    @property
    def members(self) -> int:
        """E."""
        return self.network.size

    @property
    def batch_shape(self) -> torch.Size:
        """The leading dimensions of the rows on which the model was conditioned; () before."""
        return self._batch_shape

    @property
    def train_targets(self) -> Tensor | None:
        """The outputs of the experiments, (..., n) or (..., m, n)."""
        if self._observed is None:
            return None
        targets = self._outputs.read(self._observed).mT
        return targets.squeeze(-2) if self.num_outputs == 1 else targets

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> NetworkPosterior:
        """The joint posterior of outputs at q points X (*b, q, k): (*b, q, m), or as the transform returns;
        with `observation_noise` that of experiments. ValueError for a wrong width of X, or noise as a tensor.
        """
        if isinstance(observation_noise, Tensor):
            raise ValueError(
                "observation_noise: expected True or False; got a tensor: the noise of a causal model is "
                "that of its nodes, as it was learnt"
            )
        self.eval()
        actions = self._actions(X)
        indices = range(self.num_outputs) if output_indices is None else output_indices
        read, transform = self._reader(indices), posterior_transform

        def transformed(values: Tensor) -> Tensor:
            if transform is None:
                return values
            outputs = transform.evaluate(values.contiguous())
            return outputs.unsqueeze(-1) if outputs.ndim < values.ndim else outputs

        width = transformed(actions.new_zeros(actions.shape[-2], len(indices))).shape
        shape = (*actions.shape[:-2], *width)
        if observation_noise:
            return self._experiments(actions, lambda values: transformed(read(values)), shape)
        means = partial(self._summaries, actions, lambda values: read(values).mean(-2))
        return NetworkPosterior(lambda: transformed(means()), self.members, shape, self.noise)

    def summarised(self, X: Tensor, summary: PointValues, width: int) -> NetworkPosterior:
        """The joint posterior of m numbers of the distribution of the nodes over the noise, at q points X
        (*b, q, k): (*b, q, m); `summary` takes node values (..., S, N) to (..., m).
        """
        actions = self._actions(X)
        shape = (*actions.shape[:-1], width)
        return NetworkPosterior(lambda: self._summaries(actions, summary), self.members, shape, self.noise)

    def tabulated(self) -> "NetworkModel":
        """With tables as functions of one or two inputs (`PlausibleNetworks.tabulated`)."""
        new = self._copy()
        new.network = self.network.tabulated()
        new._outputs = NetworkOutputs(new.network, self.outputs)
        return new

    def subset_output(self, idcs: list[int]) -> "NetworkModel":
        """Some of the outputs, by index; NotImplementedError if an outcome transform cannot be restricted."""
        new = self._copy()
        new._outputs = self._outputs.only(idcs)
        if (transform := self._outcome_transform) is not None:
            new.outcome_transform = transform.subset_output(idcs=idcs)
        return new

    def condition_on_observations(self, X: Tensor, Y: Tensor) -> "NetworkModel":  # type: ignore[override]
        """The model after experiments X (*b, n', k) with values Y (*b', n', N) of all nodes, in the order of
        `nodes`, or of `outputs` if these are all; ValueError if one is missing, TypeError if it cannot be
        conditioned.
        """
        self.eval()
        observations, transform = Y.to(self.noise), self._outcome_transform
        if transform is not None and self._outputs.all_nodes and observations.shape[-1] == self.num_outputs:
            observations = transform(observations)[0]
        values = self._outputs.node_values(observations)
        return self._conditioned(X, self._actions(X, expand=False), values, self.members)

    def fantasize(
        self,
        X: Tensor,
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        propagate_grads: bool = True,  # noqa: ARG002
    ) -> "NetworkModel":
        """Models of batch shape (*sample_shape, *b) after experiments X (*b, n', k) whose noisy outcomes a
        normal sampler draws, with `fantasy_members`. ValueError for a noise, TypeError if one cannot be
        conditioned.
        """
        if observation_noise is not None:
            raise ValueError(
                "observation_noise: expected None; got a tensor: the noise of a causal model is that of its "
                "nodes, as it was learnt"
            )
        self.eval()
        actions = self._actions(X)
        if not actions.shape[-2]:
            return self._resized(sampler.sample_shape + actions.shape[:-2], self.fantasy_members)
        shape = (*actions.shape[:-1], len(self.nodes))
        outcomes = self._experiments(actions, lambda values: values, shape)
        return self._conditioned(X, actions, sampler(outcomes), self.fantasy_members)

    def _experiments(self, actions: Tensor, read: Read, shape: tuple[int, ...]) -> ExperimentPosterior:
        return ExperimentPosterior(self.network, actions, self.noise, self.quantiles, read, shape)

    def _summaries(self, actions: Tensor, summary: PointValues) -> Tensor:
        """A summary over the noise of each member, (*b, q, k) -> (E, *b, q, m), in the order of samples."""

        def values(points: Tensor) -> Tensor:
            return in_pairs(summary(self.network.propagate(points, self.noise)))

        if self.batch_shape or self._moving:
            return values(actions)
        return at_distinct(values, actions, max(1, CHUNK // (self.members * len(self.noise))))

    @property
    def _outcome_transform(self) -> OutcomeTransform | None:
        """The outcome transform; BoTorch's models have the attribute only if there is one."""
        transform = self._modules.get("outcome_transform")
        assert transform is None or isinstance(transform, OutcomeTransform)
        return transform

    def _actions(self, X: Tensor, expand: bool = True) -> Tensor:
        """X in the actions' units, (*b, q, k) -> (*b, q, k), over the batch shape if `expand`."""
        width = self.bounds.shape[-1]
        actions = self.transform_inputs(X.to(self.noise))
        if actions.ndim < 2 or actions.shape[-1] != width:
            raise ValueError(
                f"X: expected the shape (..., q, {width}), a column for each of "
                f"{list(self.network.task.settings)}; got {tuple(X.shape)}"
            )
        if not expand:
            return actions
        shape = broadcast(actions.shape[:-2], self.batch_shape)
        return actions.expand(*shape, *actions.shape[-2:])

    def _conditioned(self, X: Tensor, actions: Tensor, values: Tensor, members: int) -> "NetworkModel":
        """The model after experiments with actions (*b, n', k) and node values (*b', n', N)."""
        shape = broadcast(actions.shape[:-2], values.shape[:-2], self.batch_shape)
        new = self._resized(shape, members)
        new.network = new.network.conditioned(actions, values, self._seed)
        new._moving = self._moving or actions.requires_grad or values.requires_grad
        queried = X.to(self.noise) if X.shape == actions.shape else actions
        rows = queried.expand(*new.batch_shape, *queried.shape[-2:])
        new.train_inputs = (_append_rows(self.train_inputs[0], rows),)
        if self._observed is not None:
            observations = values.expand(*new.batch_shape, *values.shape[-2:])
            new._observed = _append_rows(self._observed, observations)
        return new

    def _resized(self, batch_shape: torch.Size, members: int) -> "NetworkModel":
        """A copy with another batch shape and at most `members` members."""
        new = self._copy()
        new._batch_shape, new.network = batch_shape, self.network.few(min(members, self.members))
        return new

    def _copy(self) -> "NetworkModel":
        """A copy that shares tensors, but not the registry of modules."""
        new = copy.copy(self)
        new._modules = dict(self._modules)
        return new

    def _reader(self, positions: Sequence[int]) -> Read:
        """A function from node values (..., N) to some outputs (..., m)."""
        transform, indices = self._outcome_transform, list(positions)
        if transform is None:
            return self._outputs.only(indices).read
        return lambda values: transform.untransform(self._outputs.read(values))[0][..., indices]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Refuses to move: it is a snapshot, on the device of its surrogate and in float64."""
        moved = fn(self.noise)
        if (moved.device, moved.dtype) != (self.noise.device, self.noise.dtype):
            raise TypeError(
                f"NetworkModel: expected {self.noise.dtype} on {self.noise.device}, as its surrogate; got "
                f"{moved.dtype} on {moved.device}: move the surrogate, and build the model of that"
            )
        return super()._apply(fn, recurse)

    def _set_transformed_inputs(self) -> None:
        """No-op: the network holds its rows in its own units."""

    def _revert_to_original_inputs(self) -> None:
        """No-op, likewise."""


def _append_rows(old: Tensor, new: Tensor) -> Tensor:
    """(*b, n, c) and (*b', n', c) -> (*b', n + n', c)."""
    return torch.cat([old.expand(*new.shape[:-2], *old.shape[-2:]), new], -2)
