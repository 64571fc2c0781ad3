"""Causal Bayesian optimisation with BoTorch's parts alone: a `SingleTaskGP` for each node, then sampling.

    fit      for every node a Gaussian process of its inputs (parents and actions), by `fit_gpytorch_mll`
    compose  with fixed normal draws z, from the roots on,  x_i = mu_i(inputs) + s_i(inputs) z_i;  s_i^2 is
             the posterior variance, and for nodes with children that of the observation noise as well, since
             it propagates; the reward is the known function of the nodes
    choose   log E max(r - r*, 0) by `optimize_acqf`, the maximum smoothed; r* is the largest mean of the
             composed reward among the actions tried so far

Noise is normal with one variance for each node, and draws at different inputs are independent given z.

Source: Astudillo and Frazier (2021) (networks of processes, expected improvement by sampling); Ament et al.
(2023), Sec. 4 (the logarithm of a smoothed improvement); Balandat et al. (2020) (BoTorch).
"""

import math

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim.optimize import optimize_acqf
from botorch.utils.safe_math import log_softplus
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.branin_trap import RAW, RESTARTS
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.spaces.box import Alteration

DRAWS = 64
# Of the smoothed maximum, in units of the reward.
TEMPERATURE = 1e-2


class NodeProcesses:
    """The processes, fitted to the rows of a table.

    Args:
        task: Graph, actions and reward.
        table: Actions and nodes of the trials so far.
    """

    def __init__(self, task: CausalTask, table: Table) -> None:
        self.task = task
        self.models = {
            node: process(table.columns(task.inputs(node)), table.columns((node,))) for node in task.nodes
        }
        self.inner = {parent for node in task.nodes for parent in task.inputs(node)}
        self.draws = torch.randn(DRAWS, len(task.nodes), dtype=torch.float64)

    def rewards(self, actions: Tensor) -> Tensor:
        """Draws of the reward at actions (b, k), (DRAWS, b)."""
        shape = (DRAWS, len(actions))
        known = {
            name: each.expand(shape) for name, each in zip(self.task.actions, actions.unbind(-1), strict=True)
        }
        for place, node in enumerate(self.task.nodes):
            inputs = torch.stack([known[name] for name in self.task.inputs(node)], -1).unsqueeze(-2)
            belief = self.models[node].posterior(inputs, observation_noise=node in self.inner)
            mean, variance = (each[..., 0, 0] for each in (belief.mean, belief.variance))
            known[node] = mean + variance.clamp_min(1e-12).sqrt() * self.draws[:, place, None]
        return self.task.reward(torch.stack([known[name] for name in self.task.reward.names], -1))


class LogImprovement(AcquisitionFunction):
    """log E max(r - r*, 0), smoothed.

    Args:
        processes: The fitted processes.
        tried: Actions so far, (n, k).
    """

    def __init__(self, processes: NodeProcesses, tried: Tensor) -> None:
        super().__init__(processes.models[processes.task.nodes[-1]])
        self.processes = processes
        with torch.no_grad():
            self.best = processes.rewards(tried).mean(0).max()

    @t_batch_mode_transform(expected_q=1)  # type: ignore[untyped-decorator]
    def forward(self, X: Tensor) -> Tensor:
        """(b, 1, k) -> (b,)."""
        above = self.processes.rewards(X.squeeze(-2)) - self.best
        return torch.logsumexp(log_softplus(above, tau=TEMPERATURE), 0) - math.log(DRAWS)


def process(inputs: Tensor, outputs: Tensor) -> SingleTaskGP:
    """A fitted process, (n, d) and (n, 1)."""
    model = SingleTaskGP(
        inputs, outputs, input_transform=Normalize(inputs.shape[1]), outcome_transform=Standardize(1)
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def by_node_processes(world: CausalWorld, seed: int) -> list[float]:
    """The expected reward of each action that is tried in the rounds of a world."""
    table, found = world.observations(), []
    for index in range(world.count()):
        torch.manual_seed(1000 * seed + index)
        acquisition = LogImprovement(NodeProcesses(world.task, table), table.columns(world.task.actions))
        point, _ = optimize_acqf(acquisition, world.bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW)
        case = world.case(index)
        decision = Decision(Alteration(world.task.actions, point[0]), 0.0)
        found.append(float(world.score(case, decision)["expected"]))
        table = table + world.respond(case, decision)
    return found
