"""BoTorch's Monte Carlo acquisition functions on a causal network.

Their samples are plausible networks f_e(a) = E_u[r(x(a, u, e))] (`NetworkModel`):

    qucb      E[mu(a) + beta (pi / 2)^(1/2) |f_e(a) - mu(a)|], the upper confidence bound if f_e is normal
    qlognei   log E max(f_e(a) - max over visited a' of f_e(a'), 0), the incumbent under the same network
    qlogei    log E max(f_e(a) - f*, 0), f* the largest posterior mean at a visited action

With the causal graph qlogei is EIFN; with every node a function of all actions it is EICF, which ignores the
structure; with the reward as the only node it is the standard expected improvement. f* is a posterior mean,
because the best *observed* value is biased upwards by noise.

BoTorch's tolerances are absolute, so that the functions get rewards in standard deviations of the posterior
means at the visited actions, from the largest one. Of the visited actions qlognei keeps those that are best
in some plausible network (as BoTorch's `prune_baseline` does).

Pending actions are BoTorch's `X_pending`: their outcomes are unknown, but count as known by the time that the
candidate's is. For qlognei they belong to the incumbents; for qlogei the value is that of the candidate and
the pending actions together. So it would be for qucb, and constant wherever the pending actions' is larger in
every network (60 to 98 % of a grid in three systems): qlognei, which never was, then takes its place.

qucb is the default. Of 20 networks by seed (100 to 119) the recommendation after 15 rounds was .016 of the
range below the optimum with it, and .009 with qlognei: a difference of -.007 [-.021, .001]. The interval
contains 0, so that the simpler and cheaper function stays.

With many free actions qucb tries corners, where little is known. In the epidemic calibration, with twelve,
the best of 40 trials left 1.0 and .28 of the gap between start and optimum (seeds 100 and 101), with qlognei
.11 and .11; the mean reward of trials was -5.4 and -2.5, and is -.6 and -.5. In Alpine2, with six, qlognei
left .53 and .48, qucb .09 and .06; both in turns did no better. So above `bound_up_to` free actions, ten by
default, qlognei takes its place; in the baseline ``decision=ucb`` it does not. It does so, too, where nodes
have constraints, which BoTorch takes for improvements alone (`objectives.feasibility`), or experiments costs.

Where settings c(a) cost differently (`data.costs.ExperimentCosts`), the improvement counts per unit of cost:

    log E max(...) - log c(a).

What is recommended is the best setting, whatever experiments at it cost. On ten plants by seed, of which one
action costs ten times as much at its largest as at none (`benchmarks/costs.py`, seeds 1000 to 1009), the
regret was .035 of the range with weights and .025 without after 6 units beyond a start design of 33, .022 and
.032 after 12 (difference -.010, standard error .009), and .019 and .024 after 18: not told apart. An exponent
of the cost that falls with the budget would need one.

Source: Wilson et al. (2018), App. A (qUCB); Snoek et al. (2012), Sec. 3.2 (improvement per cost); Ament et
al. (2023), Sec. 4, Eq. 6 and 10 (log expected improvement, also noisy); Astudillo and Frazier (2019), Eq. 2
(EICF), and (2021), Eq. 5 (EIFN); Balandat et al. (2020), Sec. 3, 4 and App. C (the classes).
"""

from typing import Any, ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective
from botorch.acquisition.utils import compute_best_feasible_objective
from torch import Tensor

from rehearsal_torch.data.costs import ExperimentCosts
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import ranked
from rehearsal_torch.data.size_limits import require
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.objectives.feasibility import Constrained
from rehearsal_torch.objectives.reward_pair import RewardPair
from rehearsal_torch.surrogates.network.botorch_posterior import MemberSampler
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel

FUNCTIONS = ("qucb", "qlognei", "qlogei")


class KnownBaseline(qLogNoisyExpectedImprovement):
    """qLogNEI that evaluates its baseline once, as members are fixed functions; the values are the same."""

    def _get_samples_and_objectives(self, X: Tensor) -> tuple[Tensor, Tensor]:
        if self.baseline_obj is None:
            with torch.no_grad():
                self.baseline_samples = self.sampler(self.model.posterior(self.X_baseline))
                self.baseline_obj = self.objective(self.baseline_samples, X=self.X_baseline)
        samples = self.get_posterior_samples(self.model.posterior(X))
        return samples, self.objective(samples, X=X)

    def _compute_best_feasible_objective(self, samples: Tensor, obj: Tensor) -> Tensor:
        # In a network in which no action is feasible any feasible one is an improvement.
        worst = obj.min() - 1
        return compute_best_feasible_objective(samples, obj, self._constraints, infeasible_obj=worst)


@final
class PerCost(AcquisitionFunction):
    """The logarithm of a gain per unit of cost, of (..., 1, k)."""

    def __init__(self, gain: AcquisitionFunction, costs: ExperimentCosts) -> None:
        super().__init__(gain.model)
        self.gain, self.costs = gain, costs

    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates, (...)."""
        values: Tensor = self.gain(X) - self.costs.of(X[..., 0, :]).log()
        return values


@final
class MonteCarlo(CausalObjective):
    """The value of a class of BoTorch, in standard deviations of the posterior means at the visited actions,
    from the largest one; of an improvement its logarithm. A ValueError without a finite reward.

    Args:
        function: ``qucb``, ``qlognei`` or ``qlogei``: one of `FUNCTIONS`.
        beta: Multiplier of the standard deviation; for ``qucb``.
        bound_up_to: The most free actions with which ``qucb`` is used, ``qlognei`` with more; None for any.
    """

    takes_pending: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True
    takes_two: ClassVar[bool] = True

    def __init__(
        self,
        surrogate: CausalModel,
        case: RehearsalCase,
        function: str = "qucb",
        beta: float = 2.0,
        bound_up_to: int | None = 10,
        members: int = 16,
        draws: int = 16,
        seed: int = 0,
        pending: Tensor | None = None,
    ) -> None:
        super().__init__(surrogate, case, members, draws, seed, pending)
        valid = function in FUNCTIONS and 0 <= beta < float("inf") and len(self.visited) > 0
        expected = f"a function of {list(FUNCTIONS)}, beta >= 0 and at least one visited action"
        require(valid, expected, function=function, beta=beta, actions=len(self.visited))
        # A held action has one level.
        free = sum(
            lower < upper and len(self.levels.get(name, ())) != 1
            for name, (lower, upper) in self.box.bounds().items()
        )
        beyond = (bound_up_to is not None and free > bound_up_to) or bool(self.task.constraints or self.costs)
        self.function, self.beta = "qlognei" if function == "qucb" and beyond else function, beta

    @property
    def costs(self) -> ExperimentCosts | None:
        """What settings cost; None if all cost the same."""
        costs = self.task.costs
        return None if costs is None or not costs.actions else costs

    def built(self) -> AcquisitionFunction:
        """BoTorch's acquisition function, of (..., q, k); of an improvement per unit of cost."""
        return self._gain() if self.costs is None else PerCost(self._gain(), self.costs)

    def _gain(self) -> AcquisitionFunction:
        if self.task.reward.labels:
            return RewardPair(self, self.task.reward).improvement(self.pending)
        arguments: dict[str, Any] = {
            "sampler": MemberSampler(torch.Size([self.model.members])),
            "objective": GenericMCObjective(self.standardised),
            "X_pending": self.pending,
        }
        if self.constrained is not None:
            return self._feasible(self.constrained, **arguments)
        if self.function == "qucb" and self.pending is None:
            # BoTorch's beta is the square of the multiplier.
            return qUpperConfidenceBound(self.model, self.beta**2, **arguments)
        if self.function == "qlogei":
            return qLogExpectedImprovement(self.model, 0.0, **arguments)
        # Those that are the best in some plausible network, or on average: no other can be an incumbent.
        actions, rewards = self.tried
        best = ranked(torch.cat([rewards, rewards.mean(0, keepdim=True)])).argmax(-1)
        return KnownBaseline(self.model, actions[best.unique()], prune_baseline=False, **arguments)

    def _feasible(self, model: Constrained, **arguments: Any) -> AcquisitionFunction:
        """The improvement over feasible actions, or the probability of one while none is known."""
        if self.seeks_feasibility:
            return model.log_probability()
        actions, arguments = self.tried[0], {**arguments, "constraints": model.callables}
        if self.function == "qlogei":
            with torch.no_grad():
                best = self.mean_reward()(actions.unsqueeze(-2)).max()
            return qLogExpectedImprovement(model, best, **arguments)
        return KnownBaseline(model, actions, prune_baseline=False, **arguments)
