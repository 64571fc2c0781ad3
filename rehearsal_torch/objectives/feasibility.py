"""Outcome constraints under a fitted network: what a search sees of them, and what is claimed.

In a plausible network e a constraint with the inequalities n_f' x <= d_f and the probability p is

    c_e(a) = Q_p[max_f (n_f' x(a, u, e) - d_f) / s_f]  <=  0,

the p-quantile over the noise u; s_f is the spread of n_f' x in the experiments. It holds just if experiments
in this network keep the inequalities with a probability P_e(a) >= p. `Constrained` has the reward and the
c_e as outputs, so that BoTorch's acquisition functions take them as constraints: the improvement counts in
the networks in which the setting is feasible. Where no setting is known to be, the logarithm of the
probability that one is takes the place of the improvement.

A setting is known to be feasible if the quantile over networks at the level `SURE` has

    v(a) = max over constraints of  Q[c_e(a)]  <=  0,

and the recommendation maximises the mean reward less `PENALTY` max(v, 0), an exact penalty if the slope of
the reward along v is smaller. What is claimed is the mean of P_e, and its quantile at 1 - `SURE`, over other
networks with more draws of the noise (`outcome_constraint`).

Source: Gelbart et al. (2014), Sec. 3; Balandat et al. (2020), App. B (constraints); Ament et al. (2023),
Sec. 4 (their logarithms); Nocedal and Wright (2006), Sec. 17.2 (exact penalties).
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogProbabilityOfFeasibility
from botorch.models.model import Model
from torch import Tensor

from rehearsal_torch.data.outcome_constraint import ConstraintChance, OutcomeConstraint
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.botorch_posterior import MemberSampler, NetworkPosterior

SURE, PENALTY = 0.95, 10.0
MEMBERS, DRAWS = 32, 64  # Least numbers in a search
CLAIMED_DRAWS = 128
LATEST = 256  # Visited actions whose spread is the unit of constraints


def _places(model: NetworkModel, names: Sequence[str]) -> list[int]:
    return [model.nodes.index(name) for name in names]


def quantile(values: Tensor, probability: float) -> Tensor:
    """Weibull's quantile over the last dimension, (..., n) -> (...)."""
    count = values.shape[-1]
    share = (probability * (count + 1) - 1) / max(count - 1, 1)
    return values.quantile(min(max(share, 0.0), 1.0), -1)


@final
class Constrained(Model):
    """The expected reward and the values c_e of J constraints, 1 + J outputs."""

    def __init__(
        self, model: NetworkModel, constraints: Sequence[OutcomeConstraint], visited: Tensor
    ) -> None:
        super().__init__()
        self.base, self.constraints = model, tuple(constraints)
        if missing := [name for each in constraints for name in each.names if name not in model.nodes]:
            words = f"the method models {list(model.nodes)} alone, and constraints limit {missing}"
            raise ValueError(f"{words}: decide by one that uses the graph, such as excbo")
        with torch.no_grad():
            values = model.network.propagate(visited[-LATEST:].unsqueeze(-2), model.noise)
            faces = [self._excess(each, values).flatten(0, -2) for each in self.constraints]
        self.scales = [excess.std(0).clamp_min(1e-12) for excess in faces]

    def _excess(self, constraint: OutcomeConstraint, values: Tensor) -> Tensor:
        return constraint.excess(values[..., _places(self.base, constraint.names)])

    def summary(self, values: Tensor) -> Tensor:
        """Node values (..., S, N) to the reward and the values of the constraints, (..., 1 + J)."""
        exceeded = [
            quantile((self._excess(each, values) / scale).amax(-1), each.probability)
            for each, scale in zip(self.constraints, self.scales, strict=True)
        ]
        return torch.stack([self.base.network.reward(values).mean(-1), *exceeded], -1)

    @property
    def num_outputs(self) -> int:
        """1 + J."""
        return 1 + len(self.constraints)

    def log_probability(self) -> qLogProbabilityOfFeasibility:
        """The logarithm of the probability that a setting is feasible, of (..., 1, k)."""
        sampler = MemberSampler(torch.Size([self.base.members]))
        return qLogProbabilityOfFeasibility(self, self.callables, sampler)

    @property
    def callables(self) -> list[Callable[[Tensor], Tensor]]:
        """BoTorch's constraints, of samples (..., 1 + J)."""
        return [itemgetter((..., place)) for place in range(1, self.num_outputs)]

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> NetworkPosterior:
        """The joint posterior, (*b, q, 1 + J)."""
        return self.base.summarised(X, self.summary, self.num_outputs)

    def violation(self, samples: Tensor) -> Tensor:
        """v of samples (E, ..., 1 + J), (...): positive where a setting is not known to be feasible."""
        return quantile(samples[..., 1:].movedim(0, -1), SURE).amax(-1)


@final
class PenalisedMean(AcquisitionFunction):
    """The standardised mean reward less the penalty, of (..., 1, k)."""

    def __init__(self, model: Constrained, standardised: Callable[[Tensor], Tensor]) -> None:
        super().__init__(model)
        self.constrained, self.standardised = model, standardised

    def forward(self, X: Tensor) -> Tensor:
        """The values of candidates, (...)."""
        samples = self.constrained.posterior(X).values[..., 0, :]
        penalty = PENALTY * self.constrained.violation(samples).clamp_min(0)
        return self.standardised(samples).mean(0) - penalty


def outcomes(model: NetworkModel, constraints: Sequence[OutcomeConstraint], actions: Tensor) -> Tensor:
    """Of each member at actions (n, k): the expected reward, and the shares of the noise under which it keeps
    all constraints, and each of them, (E, n, 2 + J).
    """

    def summary(values: Tensor) -> Tensor:
        kept = [
            (each.excess(values[..., _places(model, each.names)]) <= 0).all(-1).to(values)
            for each in constraints
        ]
        columns = [model.network.reward(values), torch.stack(kept).amin(0), *kept]
        return torch.stack(columns, -1).mean(-2)

    with torch.no_grad():
        return model.summarised(actions.unsqueeze(-2), summary, 2 + len(constraints)).values[..., 0, :]


def kept_as_asked(shares: Tensor, constraints: Sequence[OutcomeConstraint]) -> Tensor:
    """Whether actions are claimed to keep all constraints, (n,), from the shares of members, (E, n, J)."""
    lows = quantile(shares.movedim(0, -1), 1 - SURE)
    return (lows >= lows.new_tensor([limit.probability for limit in constraints])).all(-1)


def claimed_chances(shares: Tensor, constraints: Sequence[OutcomeConstraint]) -> tuple[ConstraintChance, ...]:
    """What is claimed of an action, from the share of each member, (E, J)."""
    means = shares.mean(0)
    lows = quantile(shares.mT, 1 - SURE).minimum(means)
    rows = zip(constraints, means.tolist(), lows.tolist(), strict=True)
    return tuple(ConstraintChance(each.text, each.probability, *row) for each, *row in rows)
