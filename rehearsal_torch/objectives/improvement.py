"""Expected improvement through a causal system.

With plausible networks e (fixed draws of what is not known) and

    f_e(a) = 1/M sum_m r(x(a, u_m, e)),

an action is worth trying as far as some plausible network has it beat the best that is known,

    alpha(a) = log 1/E sum_e softplus(f_e(a) - f*),     f* = max over visited a of the mean of f_e(a) over e,

a smooth positive part of small temperature, in logarithms, so that there is a slope where improvement is
unlikely. f* is a posterior mean, because the best *observed* value is the luckiest one. With the causal graph
this is EIFN; with every node from all actions it is EICF, which ignores the structure where the reward is a
node.

With `noise_draws` = 1, every draw e goes with one draw u of its own, and the improvement is that of a single,
noisy experiment.

Source: Astudillo and Frazier (2019), Eq. 2 (EICF), and (2021), Eq. 5 (EIFN); Ament et al. (2023), Eq. 6 and
10 (logarithm, fat tail).
"""

from typing import final

import torch
from botorch.utils.safe_math import log_fatplus, logmeanexp
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import UNDEFINED, NoFiniteValueError
from rehearsal_torch.objectives.expected_reward import (
    SCREEN,
    CausalObjective,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.objectives.reward_frame import RewardFrame
from rehearsal_torch.surrogates.network.causal_model import CausalModel

# The temperature of the positive part, in standard deviations of the reward among the visited actions.
TEMPERATURE = 1e-6


@final
class Improvement(CausalObjective):
    """Log expected improvement over the best posterior mean.

    Args:
        surrogate: A fitted causal model.
        case: The round.
        epistemic_draws: E, draws of what is not known; even.
        noise_draws: M, draws of the noise over which each is averaged.
        draws: Draws of the noise by which recommendations are found.
        evaluation_draws: Other draws, by which a recommendation is judged.
        seed: With the round's identity, decides the draws.

    Raises:
        ValueError: if nothing has been visited, a number is out of range, or no visited action has a finite
            reward.
    """

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        epistemic_draws: int = 32,
        noise_draws: int = 4,
        draws: int = 64,
        evaluation_draws: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed)
        if noise_draws < 1 or not len(self.visited):
            raise ValueError(
                f"expected noise_draws >= 1 and at least one visited action; got noise_draws={noise_draws} "
                "and "
                f"{len(self.visited)} actions"
            )
        self.epistemic = standard_draws(epistemic_draws, len(self.network.mechanisms), self.seed + 2).to(
            self.noise
        )
        self.noise_draws = noise_draws
        self.common = surrogate.draws(epistemic_draws if noise_draws == 1 else noise_draws, self.seed + 3)
        # What cannot be set any more is no mark to improve upon.
        inside = self.visited[self.allowed(self.visited)]
        with torch.no_grad():
            middle = torch.cat(
                [
                    self.rewards(part, epistemic_draws).mean(-1)
                    for part in (inside if len(inside) else self.visited).split(64)
                ]
            )
        middle = middle[middle.isfinite()]
        if not len(middle):
            raise NoFiniteValueError(
                f"{case.identity}: expected a finite reward of some visited action; {UNDEFINED}: look "
                "for extreme rows in the table"
            )
        spread = middle.std() if len(middle) > 1 else middle.abs().max()
        # A spread of any size counts, unless it is rounding alone.
        self.best, self.scale = (
            middle.max(),
            torch.where(spread > 1e-14 * middle.abs().max(), spread, spread.clamp_min(1e-12)),
        )

    @property
    def frame(self) -> RewardFrame:
        """None: an improvement is counted in standard deviations, and the value is its logarithm."""
        return RewardFrame()

    def rewards(self, actions: Tensor, count: int) -> Tensor:
        """f_e(a) of the first `count` draws e, (..., k) -> (..., count)."""
        if self.noise_draws > 1:
            return plausible_rewards(self.network, actions, self.common, self.epistemic[:count])
        perturbed = self.epistemic[:count]
        values, _ = self.network.propagate(actions, self.common[:count], lambda place, _: perturbed[:, place])
        return self.network.reward(values)

    def value_with(self, points: Tensor, draws: int) -> Tensor:
        """(..., k) -> (...), the logarithm of an improvement in standard deviations of the reward among the
        visited actions.
        """
        # A draw and its mirror image stay together.
        count = (
            len(self.epistemic)
            if draws == len(self.noise)
            else max(2, 2 * (len(self.epistemic) // (2 * SCREEN)))
        )
        gain = (self.rewards(points, count) - self.best) / self.scale
        return logmeanexp(log_fatplus(gain, tau=TEMPERATURE), dim=-1)
