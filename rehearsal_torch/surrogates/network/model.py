"""A causal network as a BoTorch model, for use with BoTorch's acquisition functions.

The posterior of the expected reward at q actions is an ensemble: member e is the plausible network

    f_e(a) = E_u[r(x(a, u, e))],      x_i = m_i + e_i s_i,   e ~ N(0, I) fixed,

propagated through the graph in topological order (ancestral sampling) with the same e at every action. Within
a member the epistemic perturbation is thus the same number of standard deviations everywhere: joint
posteriors of several actions are more strongly correlated than under the exact posterior, while the marginal
posterior of a single action is correct.

`network_model.NetworkModel` has all of BoTorch's interface, and is the one for acquisition functions; this
is the bare ensemble. BoTorch's sampler of ensembles draws other members, with replacement, for each element
of a t-batch, so that equal candidates differ in value.

Source: Balandat et al. (2020), Sec. 3 (the model interface); Astudillo and Frazier (2021), Sec. 4.2 (fixed
samples).
"""

from typing import final

import torch
from botorch.models.ensemble import EnsembleModel
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.network_posterior import plausible_values


@final
class NetworkEnsemble(EnsembleModel):
    """E plausible networks of a fitted causal model; one output, the expected reward.

    Args:
        surrogate: The fitted model; a snapshot of its network is taken on construction.
        members: E.
        draws: Noise samples over which each member is averaged.
        seed: Seed of the members and of the noise.

    Raises:
        ValueError: if members or draws is below 1.
    """

    def __init__(self, surrogate: CausalModel, members: int = 64, draws: int = 16, seed: int = 0) -> None:
        super().__init__()
        if min(members, draws) < 1:
            raise ValueError(
                f"expected at least 1 member and 1 draw; got members={members} and draws={draws}"
            )
        self._num_outputs = 1
        self.network, self.noise = surrogate.network(), surrogate.draws(draws, seed)
        self.epistemic = draw_sobol_normal_samples(
            len(self.network.mechanisms), members, seed=seed + 1, dtype=torch.float64
        ).to(self.noise)
        self.bounds = torch.stack([surrogate.task.box.lower, surrogate.task.box.upper])

    def forward(self, X: Tensor) -> Tensor:
        """Expected rewards of actions in their units, (..., q, k) -> (..., E, q, 1)."""

        def reward(values: Tensor) -> Tensor:
            return self.network.reward(values).unsqueeze(-1)

        actions = X.to(self.noise)
        return plausible_values(self.network, actions, self.noise, self.epistemic, reward).movedim(0, -3)
