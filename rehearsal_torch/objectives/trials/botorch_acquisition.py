"""BoTorch's acquisition functions on a causal network, by name.

The objective builds a class of BoTorch on the `NetworkModel` of the fitted network, whose samples are
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

Source: Ament et al. (2023), Sec. 4 (log expected improvement, also noisy); Wilson et al. (2018), App. A
(qUCB); Balandat et al. (2020), Sec. 3 and 4. The expectation over the noise inside f_e, and the
screening, are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import ranked
from rehearsal_torch.data.sizes import require
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.objectives.trials.improvement import incumbent
from rehearsal_torch.objectives.trials.reward_frame import RewardFrame
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import MemberSampler


@dataclass(frozen=True)
class Ingredients:
    """What a class of BoTorch is built from.

    Attributes:
        model: The network, with the expected reward as its output.
        sampler: Takes each member once.
        objective: From rewards to standard deviations of posterior means, with the incumbent at 0.
        best: The visited actions that may be the best, (n, k).
        pending: Pending actions, (p, k); None if there are none.
        beta: Multiplier of the standard deviation.
    """

    model: NetworkModel
    sampler: MemberSampler
    objective: GenericMCObjective
    best: Tensor
    pending: Tensor | None
    beta: float


class KnownBaseline(qLogNoisyExpectedImprovement):
    """qLogNEI that evaluates its baseline once: members are the same functions whatever they are evaluated
    at, so that the joint samples are those of the baseline beside those of the candidates. The counterpart of
    `cache_root`, which is for Gaussian processes; the values are the same.
    """

    def _get_samples_and_objectives(self, X: Tensor) -> tuple[Tensor, Tensor]:
        if self.baseline_obj is None:
            with torch.no_grad():
                self.baseline_samples = self.sampler(self.model.posterior(self.X_baseline))
                self.baseline_obj = self.objective(self.baseline_samples, X=self.X_baseline)
        samples = self.get_posterior_samples(self.model.posterior(X))
        return samples, self.objective(samples, X=X)


def _noisy_improvement(given: Ingredients) -> AcquisitionFunction:
    return KnownBaseline(
        given.model,
        given.best,
        sampler=given.sampler,
        objective=given.objective,
        X_pending=given.pending,
        # Pruned already, from posterior samples that are at hand.
        prune_baseline=False,
    )


def _improvement(given: Ingredients) -> AcquisitionFunction:
    return qLogExpectedImprovement(
        given.model, 0.0, sampler=given.sampler, objective=given.objective, X_pending=given.pending
    )


def _bound(given: Ingredients) -> AcquisitionFunction:
    # BoTorch's beta is the square of the multiplier.
    return qUpperConfidenceBound(
        given.model, given.beta**2, sampler=given.sampler, objective=given.objective, X_pending=given.pending
    )


FUNCTIONS: dict[str, Callable[[Ingredients], AcquisitionFunction]] = {
    "qlognei": _noisy_improvement,
    "qlogei": _improvement,
    "qucb": _bound,
}
# Those whose values are rewards, and not logarithms of improvements.
BOUNDS = ("qucb",)
# At most so many plausible networks, each averaged over at most so many noise draws, screen candidates.
SCREENING_MEMBERS, SCREENING_DRAWS = 16, 8


@dataclass(frozen=True)
class _Scaled:
    """An acquisition function of standardised rewards, with the reward that is 0 and the one that is 1."""

    function: AcquisitionFunction
    frame: RewardFrame


@final
class BotorchAcquisition(CausalObjective):
    """The value of a class of BoTorch; of a bound in the reward's unit, of an improvement its logarithm, in
    standard deviations of the posterior means at the visited actions.

    Args:
        function: ``qlognei``, ``qlogei`` or ``qucb``: a key of `FUNCTIONS`.
        beta: Multiplier of the standard deviation; for ``qucb``.
        members: E, number of plausible networks; even.
        member_draws: Number of noise draws over which each is averaged.
        draws: Number of noise draws with which recommendations are found.
        evaluation_draws: Number of other draws, with which a recommendation is evaluated.
        seed: Together with the identity of the round, determines members and draws.
        pending: Actions that are under way or have failed, (p, k); None if there are none.

    Raises:
        ValueError: if the function is unknown, no action has been visited, a number is out of range, or no
            visited action has a finite reward.
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

    def _scaled(self, model: NetworkModel, best: Tensor) -> _Scaled:
        """The function on a model, with the possible incumbents (n, k)."""
        with torch.no_grad():
            centre = model.posterior(best.unsqueeze(-2)).mean.max()
        frame = RewardFrame(float(centre), float(self.scale))

        def standardised(samples: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: ARG001
            return frame.standardised(samples[..., 0])

        sampler = MemberSampler(torch.Size([len(model.epistemic)]))
        objective = GenericMCObjective(standardised)
        function = FUNCTIONS[self.function](
            Ingredients(model, sampler, objective, best, self.pending, self.beta)
        )
        return _Scaled(function, frame if self.function in BOUNDS else RewardFrame())

    def built(self, screening: bool) -> AcquisitionFunction:
        """BoTorch's acquisition function, of (..., q, k) in the actions' units."""
        return (self._screening if screening else self._fine).function

    @property
    def frame(self) -> RewardFrame:
        """The frame of the bound; the identity for logarithms of improvements."""
        return self._fine.frame

    def __call__(self, points: Tensor) -> Tensor:
        """The value of single candidates, (..., k) -> (...)."""
        return self._fine.frame.centre + self._fine.frame.unit * super().__call__(points)

    def rough(self, points: Tensor) -> Tensor:
        """The value under fewer members and noise draws, (..., k) -> (...)."""
        return self._screening.frame.centre + self._screening.frame.unit * super().rough(points)
