"""A causal network as a BoTorch model, so that BoTorch's acquisition functions can be used on it.

The posterior of the expected reward at q actions is an ensemble: member e is the plausible network

    f_e(a) = E_u[r(x(a, u, e))],      x_i = m_i + e_i s_i,   e ~ N(0, I) fixed,

carried through the graph in topological order (ancestral sampling) with the same e at every action. Within a
member what is not known is thus the same number of standard deviations everywhere: joint posteriors of
several actions are more dependent than they are in truth, while that of a single action is right.

Source: Balandat et al. (2020), Sec. 3 (what a model has to offer); Astudillo and Frazier (2021), Sec. 4.2
(fixed draws).
"""

from typing import final

import torch
from botorch.models.ensemble import EnsembleModel
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from rehearsal_torch.surrogates.network.causal_model import CausalModel


@final
class NetworkEnsemble(EnsembleModel):
    """E plausible networks of a fitted causal model; one output, the expected reward.

    Args:
        surrogate: The fitted model; its network is taken once, as it is now.
        members: E.
        draws: Draws of the noise that each member is averaged over.
        seed: Decides both.

    Raises:
        ValueError: if there is no member or no draw.
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
        members, draws = len(self.epistemic), len(self.noise)
        perturbed = self.epistemic.repeat_interleave(draws, 0)
        values, _ = self.network.propagate(
            X, self.noise.repeat(members, 1), lambda place, _: perturbed[:, place]
        )
        rewards = self.network.reward(values).unflatten(-1, (members, draws)).mean(-1)
        return rewards.mT.unsqueeze(-1)
