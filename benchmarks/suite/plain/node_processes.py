"""Causal Bayesian optimisation with BoTorch's parts alone: a `SingleTaskGP` for each node, and qLogNEI.

    fit      for every node a Gaussian process of its inputs (parents and actions), by `fit_gpytorch_mll`
    sample   from the roots on, jointly at the q actions,  x_i = mu_i + R_i z_i,  R_i R_i' the posterior
             covariance of the q inputs that the sample has reached, z_i standard normal
    choose   `qLogNoisyExpectedImprovement` of the known reward of the sampled nodes, by `optimize_acqf`; its
             baseline is the actions tried so far, pruned

The network is a `Model` whose posterior is sampled, with the nodes as its outputs and the reward as its
objective: what the papers' network of processes is in BoTorch. A node with children is sampled with the
observation noise that its process has learnt, since it reaches them: one normal draw for all actions of a
sample, so that actions are compared under the same noise. (Without it, as for networks without noise, six
rounds of Dropwave ended no different within the error of ten seeds.)

Noise is normal with one variance for each node.

Source: Astudillo and Frazier (2021), Sec. 4 (networks of processes, acquisition by sampling); Ament et al.
(2023), Sec. 4 (qLogNEI); Balandat et al. (2020) (BoTorch). The noise of nodes with children is ours.
"""

from typing import Any

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Normalize, Standardize
from botorch.optim.optimize import optimize_acqf
from botorch.posteriors.posterior import Posterior
from botorch.sampling.get_sampler import GetSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.suite.plain.black_box import RAW, RESTARTS
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.spaces.box import Alteration

DRAWS = 64
# Raw samples are evaluated in parts, so that a tensor of draws, actions and their pairs stays small.
AT_ONCE = 64


class NodeProcesses(Model):
    """The processes, fitted to the rows of a table; the outputs are the nodes.

    Args:
        task: Graph, actions and reward.
        table: Actions and nodes of the trials so far.
    """

    def __init__(self, task: CausalTask, table: Table) -> None:
        super().__init__()
        self.task = task
        self.processes = torch.nn.ModuleList(
            process(table.columns(task.inputs(node)), table.columns((node,))) for node in task.nodes
        )
        self.inner = {parent for node in task.nodes for parent in task.inputs(node)}

    @property
    def num_outputs(self) -> int:
        """The number of nodes."""
        return len(self.task.nodes)

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: one set of rows."""
        return torch.Size()

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> "NodesPosterior":
        """The joint posterior of the nodes at actions (*b, q, k)."""
        self.eval()
        return NodesPosterior(self, X)

    def noise(self, place: int) -> Tensor:
        """The standard deviation of a node's observation noise, in its unit."""
        each = self.processes[place]
        return (each.likelihood.noise.sqrt() * each.outcome_transform.stdvs.flatten()).detach()

    def reward(self) -> GenericMCObjective:
        """The known reward of node values, (..., nodes) -> (...)."""
        read = [self.task.nodes.index(name) for name in self.task.reward.names]
        return GenericMCObjective(lambda values, X=None: self.task.reward(values[..., read]))  # noqa: ARG005


class NodesPosterior(Posterior):
    """The joint posterior of the nodes at q actions, given by its samples.

    Args:
        network: The fitted processes.
        actions: (*b, q, k).
    """

    def __init__(self, network: NodeProcesses, actions: Tensor) -> None:
        self.network, self.actions = network, actions

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return self.actions.device

    @property
    def dtype(self) -> torch.dtype:
        """That of the actions."""
        return self.actions.dtype

    @property
    def batch_shape(self) -> torch.Size:
        """b."""
        return self.actions.shape[:-2]

    @property
    def base_sample_shape(self) -> torch.Size:
        """(*b, q + 1, nodes): the functions at q actions, then the noise."""
        return torch.Size((*self.batch_shape, self.actions.shape[-2] + 1, self.network.num_outputs))

    @property
    def batch_range(self) -> tuple[int, int]:
        """The dimensions of t-batches, which share base samples."""
        return (0, -2)

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self.actions.shape[:-1] + torch.Size([self.network.num_outputs])

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Samples under new draws, (*sample_shape, *b, q, nodes)."""
        shape = torch.Size([1]) if sample_shape is None else sample_shape
        return self.rsample_from_base_samples(
            shape, torch.randn(shape + self.base_sample_shape, dtype=self.dtype)
        )

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Samples (*sample_shape, *b, q, nodes) from draws (*sample_shape, *b, q + 1, nodes)."""
        task = self.network.task
        known = dict(zip(task.actions, self.actions.unbind(-1), strict=True))
        for place, (node, each) in enumerate(zip(task.nodes, self.network.processes, strict=True)):
            inputs = torch.stack(torch.broadcast_tensors(*(known[name] for name in task.inputs(node))), -1)
            # Inputs that are actions alone are the same in all samples.
            lead = sample_shape if inputs.ndim == self.actions.ndim else torch.Size()
            belief = each.posterior(inputs)
            functions, noise = base_samples[..., :-1, place], base_samples[..., -1:, place]
            known[node] = belief.rsample_from_base_samples(lead, functions).squeeze(-1)
            if node in self.network.inner:
                known[node] = known[node] + self.network.noise(place) * noise
        return torch.stack([known[name] for name in task.nodes], -1)


def _sampler(
    posterior: NodesPosterior,  # noqa: ARG001
    sample_shape: torch.Size,
    *,
    seed: int | None = None,
) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(sample_shape, seed=seed)


GetSampler.register(NodesPosterior)(_sampler)


def process(inputs: Tensor, outputs: Tensor) -> SingleTaskGP:
    """A fitted process, (n, d) and (n, 1)."""
    model = SingleTaskGP(
        inputs, outputs, input_transform=Normalize(inputs.shape[1]), outcome_transform=Standardize(1)
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def improvement(network: NodeProcesses, tried: Tensor) -> qLogNoisyExpectedImprovement:
    """The acquisition function, of (b, 1, k); tried are the actions so far, (n, k)."""
    seed = int(torch.randint(2**31 - 1, ()))
    sampler = SobolQMCNormalSampler(torch.Size([DRAWS]), seed=seed)
    return qLogNoisyExpectedImprovement(network, tried, sampler, network.reward(), prune_baseline=True)


def by_node_processes(world: CausalWorld, seed: int) -> list[float]:
    """The expected reward of each action that is tried in the rounds of a world."""
    table, found = world.observations(), []
    for index in range(world.count()):
        torch.manual_seed(1000 * seed + index)
        network = NodeProcesses(world.task, table)
        point, _ = optimize_acqf(
            improvement(network, table.columns(world.task.actions)),
            world.bounds,
            q=1,
            num_restarts=RESTARTS,
            raw_samples=RAW,
            options={"init_batch_limit": AT_ONCE},
        )
        case = world.case(index)
        decision = Decision(Alteration(world.task.actions, point[0]), 0.0)
        found.append(float(world.score(case, decision)["expected"]))
        table = table + world.respond(case, decision)
    return found
