"""Expected improvement and BoTorch's acquisition functions on a causal network.

With plausible networks e (fixed epistemic draws) and

    f_e(a) = 1/M sum_m r(x(a, u_m, e)),

the expected improvement of an action over the best one so far is

    alpha(a) = log 1/E sum_e softplus(f_e(a) - f*),     f* = max over visited a of the mean of f_e(a) over e,

with a smooth positive part of small temperature, and in logarithms, so that the gradient does not vanish
where an improvement is unlikely. f* is a posterior mean, because the best *observed* value is biased upwards
by noise. With the causal graph this is EIFN; with every node a function of all actions it is EICF, which
ignores the structure, and the reward is a node.

The acquisition function takes f* and a scale; the objective finds both from the visited actions.

`BotorchAcquisition` builds a class of BoTorch on the `NetworkModel` of the fitted network, whose samples are
plausible networks f_e(a) = E_u[r(x(a, u, e))], and takes its values as they are:

    qlognei   log E max(f_e(a) - max over visited a' of f_e(a'), 0), the incumbent under the same network
    qlogei    log E max(f_e(a) - f*, 0), f* the largest posterior mean at a visited action
    qucb      E[mu(a) + beta (pi / 2)^(1/2) |f_e(a) - mu(a)|], the upper confidence bound if f_e is normal

BoTorch's tolerances are absolute, so that the functions get rewards in standard deviations of the posterior
means at the visited actions, from the largest one. Candidates are screened with the same function of fewer
members and noise draws. Of the visited actions qlognei keeps those that are best in some plausible network
(as BoTorch's `prune_baseline` does).

Pending actions are BoTorch's `X_pending`: their outcomes are unknown, but count as known by the time that the
candidate's is. For qlognei they belong to the incumbents; for the others the value is that of the candidate
and the pending actions together.

Under one plausible network a mechanism deviates by the same number of standard deviations everywhere
(`surrogates.network.network_model`). The difference of two actions, by which qlognei and pending actions are
judged, therefore counts as better known than it is.

Source: Astudillo and Frazier (2019), Eq. 2 (EICF), and (2021), Eq. 5 (EIFN); Ament et al. (2023), Sec. 4,
Eq. 6 and 10 (log expected improvement, also noisy; fat tail); Wilson et al. (2018), App. A (qUCB); Balandat
et al. (2020), Sec. 3, 4 and App. C (the classes).
"""

from typing import Any, ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective
from botorch.utils.safe_math import log_fatplus, logmeanexp
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import UNDEFINED, NoFiniteValueError, ranked
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.expected_reward import (
    SCREEN,
    CausalObjective,
    DrawnNetwork,
    NetworkAcquisition,
    RewardFrame,
    plausible_rewards,
    standard_draws,
)
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import MemberSampler

# The temperature of the positive part, in standard deviations of the reward among the visited actions.
TEMPERATURE = 1e-6
# M.
NOISE_DRAWS = 4


def incumbent(means: Tensor, identity: str) -> tuple[Tensor, Tensor]:
    """The largest finite posterior mean at the visited actions, (n,), and the standard deviation of all; one
    of their size, if they agree up to rounding.

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
        self, model: NetworkModel | DrawnNetwork, best_f: float | Tensor, scale: float | Tensor = 1.0
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

    Raises:
        ValueError: if no action has been visited, or none has a finite reward.
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
        """The log expected improvement, in standard deviations of the visited rewards, of (..., 1, k)."""
        count = len(self.epistemic)
        # An even number, so that each draw keeps its antithetic counterpart.
        few = max(2, 2 * (count // (2 * SCREEN)))
        return NetworkLogExpectedImprovement(self._drawn(few if screening else count), self.best, self.scale)

    def _drawn(self, count: int) -> DrawnNetwork:
        """The network with the first `count` epistemic draws."""
        return DrawnNetwork(self.searched, self.common, self.epistemic[:count])


class KnownBaseline(qLogNoisyExpectedImprovement):
    """qLogNEI that evaluates its baseline once: members are the same functions whatever they are evaluated
    at. The counterpart of `cache_root`, which is for Gaussian processes; the values are the same.
    """

    def _get_samples_and_objectives(self, X: Tensor) -> tuple[Tensor, Tensor]:
        if self.baseline_obj is None:
            with torch.no_grad():
                self.baseline_samples = self.sampler(self.model.posterior(self.X_baseline))
                self.baseline_obj = self.objective(self.baseline_samples, X=self.X_baseline)
        samples = self.get_posterior_samples(self.model.posterior(X))
        return samples, self.objective(samples, X=X)


FUNCTIONS = ("qlognei", "qlogei", "qucb")
# At most so many plausible networks, each averaged over at most so many noise draws, screen candidates.
SCREENING_MEMBERS, SCREENING_DRAWS = 16, 8


@final
class BotorchAcquisition(CausalObjective):
    """The value of a class of BoTorch; of a bound in the reward's unit, of an improvement its logarithm, in
    standard deviations of the posterior means at the visited actions.

    Args:
        function: ``qlognei``, ``qlogei`` or ``qucb``: one of `FUNCTIONS`.
        beta: Multiplier of the standard deviation; for ``qucb``.
        members: E, number of plausible networks; even.
        member_draws: Number of noise draws over which each is averaged.
        draws: Number of noise draws with which recommendations are found.

    Raises:
        ValueError: if the function is unknown, no action has been visited, or none has a finite reward.
    """

    takes_pending: ClassVar[bool] = True

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        function: str = "qlognei",
        beta: float = 2.0,
        members: int = 32,
        member_draws: int = 16,
        draws: int = 64,
        evaluation_draws: int = 256,
        seed: int = 0,
        pending: Tensor | None = None,
    ) -> None:
        super().__init__(surrogate, case, draws, evaluation_draws, seed, pending)
        require(
            function in FUNCTIONS and 0 <= beta < float("inf") and len(self.visited) > 0,
            f"a function of {list(FUNCTIONS)}, beta >= 0 and at least one visited action",
            **{"function": function, "beta": beta, "actions": len(self.visited)},
        )
        self.function, self.beta = function, beta
        sizes: dict[str, Any] = {"members": members, "draws": member_draws}
        model = NetworkModel(surrogate, **sizes, seed=self.seed + 2, as_fitted=True)
        # An action that is no longer allowed does not count as the incumbent.
        inside = self.visited[self.allowed(self.visited)]
        visited = inside if len(inside) else self.visited
        with torch.no_grad():
            rewards = model.posterior(visited.unsqueeze(-2)).values[..., 0, 0]
        means = rewards.mean(0)
        _, self.scale = incumbent(means, case.identity)
        # Those that are the best in some plausible network, or on average: no other can be an incumbent.
        first = ranked(torch.cat([rewards, means.unsqueeze(0)])).argmax(-1)
        best = visited[first.unique()]
        self._fine = self._scaled(model, best)
        few = model.fewer(min(SCREENING_MEMBERS, members), min(SCREENING_DRAWS, member_draws))
        self._screening = self._scaled(few, best)

    def _scaled(self, model: NetworkModel, best: Tensor) -> tuple[AcquisitionFunction, RewardFrame]:
        """The function on a model, with the possible incumbents (n, k), and the frame of its values."""
        with torch.no_grad():
            centre = model.posterior(best.unsqueeze(-2)).mean.max()
        frame = RewardFrame(float(centre), float(self.scale))

        def standardised(samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: ARG001
            return frame.standardised(samples[..., 0])

        given: dict[str, Any] = {
            "sampler": MemberSampler(torch.Size([len(model.epistemic)])),
            "objective": GenericMCObjective(standardised),
            "X_pending": self.pending,
        }
        if self.function == "qlognei":
            # Pruned already, from posterior samples that are at hand.
            return KnownBaseline(model, best, prune_baseline=False, **given), RewardFrame()
        if self.function == "qlogei":
            return qLogExpectedImprovement(model, 0.0, **given), RewardFrame()
        # BoTorch's beta is the square of the multiplier; values are rewards.
        return qUpperConfidenceBound(model, self.beta**2, **given), frame

    def built(self, screening: bool) -> AcquisitionFunction:
        """BoTorch's acquisition function, of (..., q, k) in the actions' units."""
        return (self._screening if screening else self._fine)[0]

    @property
    def frame(self) -> RewardFrame:
        """The frame of the bound; the identity for logarithms of improvements."""
        return self._fine[1]

    def __call__(self, points: Tensor) -> Tensor:
        """The value of single candidates, (..., k) -> (...)."""
        return self.frame.centre + self.frame.unit * super().__call__(points)

    def rough(self, points: Tensor) -> Tensor:
        """The value under fewer members and noise draws, (..., k) -> (...)."""
        frame = self._screening[1]
        return frame.centre + frame.unit * super().rough(points)
