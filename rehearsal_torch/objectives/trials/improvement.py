"""Expected improvement through a causal network.

With plausible networks e (fixed epistemic draws) and

    f_e(a) = 1/M sum_m r(x(a, u_m, e)),

the value of an action is its expected improvement over the best action so far,

    alpha(a) = log 1/E sum_e softplus(f_e(a) - f*),     f* = max over visited a of the mean of f_e(a) over e,

with a smooth positive part of small temperature, and in logarithms, so that the gradient does not vanish
where an improvement is unlikely. f* is a posterior mean, because the best *observed* value is biased upwards
by noise. With the causal graph this is EIFN; with every node a function of all actions it is EICF, which
ignores the structure, and the reward is a node.

The acquisition function takes f* and a scale; the objective finds both from the visited actions.

Source: Astudillo and Frazier (2019), Eq. 2 (EICF), and (2021), Eq. 5 (EIFN); Ament et al. (2023), Eq. 6 and
10 (logarithm, fat tail).
"""

from typing import final

import torch
from botorch.utils.safe_math import log_fatplus, logmeanexp
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import UNDEFINED, NoFiniteValueError
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.trials.expected_reward import SCREEN, CausalObjective
from rehearsal_torch.objectives.trials.network_acquisition import (
    DrawnNetwork,
    NetworkAcquisition,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.objectives.trials.reward_frame import RewardFrame
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.network_model import NetworkModel

# The temperature of the positive part, in standard deviations of the reward among the visited actions.
TEMPERATURE = 1e-6
# M.
NOISE_DRAWS = 4


def incumbent(means: Tensor, identity: str) -> tuple[Tensor, Tensor]:
    """The largest posterior mean at the visited actions, (n,), and the standard deviation of posterior means;
    one, if they agree up to rounding, of their size. Values that are not finite do not count.

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


def improvable_rewards(drawn: DrawnNetwork, actions: Tensor) -> Tensor:
    """f_e(a) for every draw e, (..., k) -> (..., E)."""
    return plausible_rewards(drawn.network, actions, drawn.noise, drawn.epistemic)


@final
class NetworkLogExpectedImprovement(NetworkAcquisition):
    """Log expected improvement over plausible networks.

    Args:
        best_f: f*, the reward to improve on, in its unit.
        scale: The reward that counts as one: values are logarithms of improvements in multiples of it, > 0.

    Raises:
        ValueError: if the scale is not positive, or the model is not one of the reward alone.
    """

    _log = True

    def __init__(
        self,
        model: NetworkModel | DrawnNetwork,
        best_f: float | Tensor,
        scale: float | Tensor = 1.0,
    ) -> None:
        super().__init__(model)
        require(bool(scale > 0), "scale > 0", scale=float(scale))
        self.best_f, self.scale = best_f, scale

    def value(self, points: Tensor) -> Tensor:
        """(..., k) -> (...)."""
        gain = (improvable_rewards(self.drawn, points) - self.best_f) / self.scale
        return logmeanexp(log_fatplus(gain, tau=TEMPERATURE), dim=-1)


@final
class Improvement(CausalObjective):
    """Log expected improvement over the best posterior mean.

    Args:
        epistemic_draws: E, number of epistemic draws; even.
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
        draws: int = 64,
        evaluation_draws: int = 256,
        seed: int = 0,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed)
        if not len(self.visited):
            raise ValueError("expected at least one visited action; got none")
        drawn = standard_draws(epistemic_draws, len(self.network.mechanisms), self.seed + 2)
        self.epistemic = drawn.to(self.noise)
        self.common = surrogate.draws(NOISE_DRAWS, self.seed + 3)
        # An action that is no longer allowed does not count as the incumbent.
        inside = self.visited[self.allowed(self.visited)]
        every, tried = self._drawn(epistemic_draws), inside if len(inside) else self.visited
        with torch.no_grad():
            means = [improvable_rewards(every, part).mean(-1) for part in tried.split(64)]
        self.best, self.scale = incumbent(torch.cat(means), case.identity)

    @property
    def frame(self) -> RewardFrame:
        """The identity: values are logarithms of improvements in standard deviations."""
        return RewardFrame()

    def built(self, screening: bool) -> NetworkLogExpectedImprovement:
        """The log expected improvement, in standard deviations of the reward among the visited actions, of
        (..., 1, k).
        """
        count = len(self.epistemic)
        # An even number, so that each draw keeps its antithetic counterpart.
        few = max(2, 2 * (count // (2 * SCREEN)))
        return NetworkLogExpectedImprovement(self._drawn(few if screening else count), self.best, self.scale)

    def _drawn(self, count: int) -> DrawnNetwork:
        """The network with the first `count` epistemic draws."""
        return DrawnNetwork(self.searched, self.common, self.epistemic[:count])
