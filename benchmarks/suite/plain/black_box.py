"""Bayesian optimisation with BoTorch's parts alone: a `SingleTaskGP` of the rewards, and qLogNEI.

Source: Balandat et al. (2020) (BoTorch); Ament et al. (2023), Sec. 4 (qLogNEI).
"""

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.spaces.box import Alteration

RAW, RESTARTS = 512, 10


def by_botorch(world: CausalWorld, seed: int) -> list[float]:
    """The expected reward of each action that a Gaussian process of the rewards tries."""
    table, found = world.observations(), []
    columns = [table.names.index(name) for name in world.task.actions]
    for index in range(world.count()):
        torch.manual_seed(1000 * seed + index)
        actions, rewards = table.values[:, columns], world.task.reward_of(table).unsqueeze(-1)
        model = SingleTaskGP(
            actions,
            rewards,
            input_transform=Normalize(len(columns), bounds=world.bounds),
            outcome_transform=Standardize(1),
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        point, _ = optimize_acqf(
            qLogNoisyExpectedImprovement(model, actions, prune_baseline=True),
            world.bounds,
            q=1,
            num_restarts=RESTARTS,
            raw_samples=RAW,
        )
        case = world.case(index)
        decision = Decision(Alteration(world.task.actions, point[0]), 0.0)
        found.append(float(world.score(case, decision)["expected"]))
        table = table + world.respond(case, decision)
    return found
