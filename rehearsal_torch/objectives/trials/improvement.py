"""Expected improvement through a causal network.

With plausible networks e (fixed epistemic draws) and

    f_e(a) = 1/M sum_m r(x(a, u_m, e)),

the value of an action is its expected improvement over the best action so far,

    alpha(a) = log 1/E sum_e softplus(f_e(a) - f*),     f* = max over visited a of the mean of f_e(a) over e,

with a smooth positive part of small temperature, and in logarithms, so that the gradient does not vanish
where an improvement is unlikely. f* is a posterior mean, because the best *observed* value is biased upwards
by noise. With the causal graph this is EIFN; with every node a function of all actions it is EICF, which
ignores the structure, and the reward is a node.

With `noise_draws` = 1, every draw e is paired with one noise draw u of its own, and the improvement is that
of a single, noisy experiment.

Source: Astudillo and Frazier (2019), Eq. 2 (EICF), and (2021), Eq. 5 (EIFN); Ament et al. (2023), Eq. 6 and
10 (logarithm, fat tail).
"""

from typing import final

import torch
from botorch.utils.safe_math import log_fatplus, logmeanexp
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import UNDEFINED, NoFiniteValueError
from rehearsal_torch.objectives.trials.expected_reward import (
    SCREEN,
    CausalObjective,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.objectives.trials.reward_frame import RewardFrame
from rehearsal_torch.surrogates.network.causal_model import CausalModel

# The temperature of the positive part, in standard deviations of the reward among the visited actions.
TEMPERATURE = 1e-6


def incumbent(means: Tensor, identity: str) -> tuple[Tensor, Tensor]:
    """The largest posterior mean, and the standard deviation of posterior means, of (n,); one, if they agree
    up to rounding, of their size.

    Args:
        means: Posterior means at the visited actions; values that are not finite do not count.
        identity: The round, for messages.

    Raises:
        NoFiniteValueError: if none is finite.
    """
    known = means[means.isfinite()]
    if not len(known):
        raise NoFiniteValueError(
            f"{identity}: expected a finite reward of some visited action; {UNDEFINED}: look "
            "for extreme values in the table"
        )
    spread = known.std() if len(known) > 1 else known.abs().max()
    # A spread of any size counts, unless it is only rounding.
    return known.max(), torch.where(spread > 1e-14 * known.abs().max(), spread, spread.clamp_min(1e-12))


@final
class Improvement(CausalObjective):
    """Log expected improvement over the best posterior mean.

    Args:
        surrogate: A fitted causal model.
        case: The round.
        epistemic_draws: E, number of epistemic draws; even.
        noise_draws: M, number of noise draws over which each is averaged.
        draws: Number of noise draws with which recommendations are found.
        evaluation_draws: Number of other draws, with which a recommendation is evaluated.
        seed: Together with the identity of the round, determines the draws.

    Raises:
        ValueError: if no action has been visited, a number is out of range, or no visited action has a finite
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
                f"and {len(self.visited)} actions"
            )
        self.epistemic = standard_draws(epistemic_draws, len(self.network.mechanisms), self.seed + 2).to(
            self.noise
        )
        self.noise_draws = noise_draws
        self.common = surrogate.draws(epistemic_draws if noise_draws == 1 else noise_draws, self.seed + 3)
        # An action that is no longer allowed does not count as the incumbent.
        inside = self.visited[self.allowed(self.visited)]
        with torch.no_grad():
            middle = torch.cat(
                [
                    self.rewards(part, epistemic_draws).mean(-1)
                    for part in (inside if len(inside) else self.visited).split(64)
                ]
            )
        self.best, self.scale = incumbent(middle, case.identity)

    @property
    def frame(self) -> RewardFrame:
        """The identity: values are logarithms of improvements in standard deviations."""
        return RewardFrame()

    def rewards(self, actions: Tensor, count: int) -> Tensor:
        """f_e(a) of the first `count` draws e, (..., k) -> (..., count)."""
        if self.noise_draws > 1:
            return plausible_rewards(self.network, actions, self.common, self.epistemic[:count])
        perturbed = self.epistemic[:count]
        values, _ = self.network.propagate(actions, self.common[:count], lambda place, _: perturbed[:, place])
        return self.network.reward(values)

    def value_with(self, points: Tensor, draws: int) -> Tensor:
        """(..., k) -> (...), the log expected improvement, in standard deviations of the reward among the
        visited actions.
        """
        # An even number, so that each draw keeps its antithetic counterpart.
        count = (
            len(self.epistemic)
            if draws == len(self.noise)
            else max(2, 2 * (len(self.epistemic) // (2 * SCREEN)))
        )
        gain = (self.rewards(points, count) - self.best) / self.scale
        return logmeanexp(log_fatplus(gain, tau=TEMPERATURE), dim=-1)
