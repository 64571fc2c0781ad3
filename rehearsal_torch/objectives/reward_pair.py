"""Two rewards of experiments, of which neither is worth a known amount of the other: what improves the front.

Settings are compared by the expectations of both rewards, (E[r_1 | a], E[r_2 | a]). One is dominated if
another is at least as good in both, and better in one; the others are the front, whose hypervolume is the
area that it dominates above a reference point z. The value of trying a is the expected improvement of it over
the visited actions, in plausible networks f_e,

    1/E sum_e [ HV(f_e(visited and a)) - HV(f_e(visited)) ],

by the logarithm of BoTorch's smooth version. Rewards are in units of their spread at the visited actions. z
lies a tenth of the range of the front below its worst values in each reward, both by posterior means; of a
front with a single action, of the range of all.

In 6 systems by seed, of three actions and three nodes, the recommended front had 93 and 96 % of the largest
hypervolume after 20 and 40 experiments; 82 and 91 % after random ones, 93 and 91 % after those that
maximise the sum.

Source: Daulton et al. (2021), "Parallel Bayesian optimization of multiple noisy objectives with expected
hypervolume improvement"; Ament et al. (2023) (logarithm); Ishibuchi et al. (2011) (the reference point).
"""

from functools import cached_property
from unittest.mock import patch

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from rehearsal_torch.data.known_reward import KnownReward
from rehearsal_torch.objectives.expected_reward import CLAIMED_DRAWS, CLAIMED_MEMBERS, CausalObjective
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.botorch_posterior import MemberSampler


class RewardPair:
    """The values of two rewards under the model of an objective."""

    def __init__(self, objective: CausalObjective, reward: KnownReward) -> None:
        if not {*reward.names} <= {*objective.network.task.nodes}:
            raise ValueError("the model learns a single reward and not its nodes: take excbo for two")
        self.objective, self.reward = objective, reward

    @cached_property
    def model(self) -> NetworkModel:
        """The model of the search, whose outputs are the nodes of both rewards."""
        of = self.objective
        outputs, sizes = self.reward.names, (of.members, of.draws)
        return NetworkModel(of.surrogate, outputs, *sizes, seed=of.seed).tabulated()

    @cached_property
    def claimed(self) -> NetworkModel:
        """The model that claims the results."""
        of, sizes = self.objective, (CLAIMED_MEMBERS, CLAIMED_DRAWS)
        return NetworkModel(of.surrogate, self.reward.names, *sizes, seed=of.seed + 10)

    def expected(self, actions: Tensor) -> Tensor:
        """The expectations of both rewards, (..., k) -> (..., 2)."""
        return self.reward.both(self.model.posterior(actions.unsqueeze(-2)).mean[..., 0, :])

    def plausible(self, actions: Tensor) -> Tensor:
        """Their expectations in each of E plausible networks, as claimed, (..., k) -> (E, ..., 2)."""
        with torch.no_grad():
            return self.reward.both(self.claimed.posterior(actions.unsqueeze(-2)).values[..., 0, :])

    @cached_property
    def units(self) -> tuple[Tensor, Tensor]:
        """Centre and spread of the rewards at the visited actions, (2,) each."""
        with torch.no_grad():
            means = self.expected(self.objective.visited)
        spread = means.std(0) if len(means) > 1 else means.new_ones(2)
        return means.mean(0), spread.clamp_min(1e-300)

    def standardised(self, rewards: Tensor) -> Tensor:
        """Rewards (..., 2) in units of `units`."""
        centre, spread = self.units
        return (rewards - centre) / spread

    def reference(self) -> Tensor:
        """z, (2,), standardised."""
        with torch.no_grad():
            means = self.standardised(self.expected(self.objective.visited))
        front = means[is_non_dominated(means)]
        return infer_reference_point(front if len(front) > 1 else means)

    def improvement(self, pending: Tensor | None) -> AcquisitionFunction:
        """The logarithm of the expected improvement of the hypervolume, of (..., q, k)."""

        def rewards(samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: ARG001
            return self.standardised(self.reward.both(samples))

        # Its kernel in C++ (not in all versions) would be compiled for a minute, and rounds in another way.
        with patch.object(logei, "_load_attempted", new=True, create=True):
            return logei.qLogNoisyExpectedHypervolumeImprovement(
                self.model,
                self.reference().tolist(),
                self.objective.visited,
                sampler=MemberSampler(torch.Size([self.model.members])),
                objective=GenericMCMultiOutputObjective(rewards),
                X_pending=pending,
                cache_root=False,
            )
