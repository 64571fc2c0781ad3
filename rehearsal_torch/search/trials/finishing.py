"""Whether to finish an experiment of which some nodes were measured.

In a network the reward of a running experiment at a, given the nodes x_M that were measured, follows from
the remaining mechanisms alone: in plausible networks e, with draws u of the noise,

    r(x(a, u, e)),      x_M held at their values.

(The noise of a cause of M that was not measured itself is drawn as if nothing were known of it.) What would
still be learnt from it is worth the knowledge gradient: D are the nodes that are left, drawn likewise, and

    V = E_D max_a' m(a' | D) - max_a' m(a'),      m the posterior mean of the reward,

is how much better, in expectation, the setting recommended with D is. Finishing costs the share c of a whole
experiment. The next experiment would teach V' at the cost of 1, so that the rest does not pay if

    V / c < V'      and      P(r > m(a*)) < 0.05,

a comparison in which the price of an experiment cancels; what may well beat the recommended setting a* is
finished, since V looks one experiment ahead alone. (Without the second condition the regret at equal cost was
no lower than that of finishing everything: 0.19 and 0.14 of the range on average over costs of 1 to 4 after
the start design, standard error of the difference 0.04, in seven chains of three nodes by seed whose last
step costs 0.8. With it no gain is shown either, in two further chains.) The maximum is over the recommended
setting and those that are best in some plausible network; V' is of the setting that would be proposed next.

Source: Buathong et al. (2024), "Bayesian optimization of function networks with partial evaluations", Sec. 4
(knowledge gradient by cost); Astudillo and Frazier (2021), Sec. 4.2 (samples through the network); Frazier et
al. (2009) (maximum over finitely many alternatives).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.search.trials.acquisition import Recommendation
from rehearsal_torch.surrogates.network.causal_surrogate import PlausibleNetworks

ENDS, UNLIKELY = (0.025, 0.975), 0.05
POINTS = 256  # Space-filling settings among which the best of each network is looked for
MEMBERS, DRAWS = 16, 8  # Networks that learn from D, and draws of the noise in each
OUTCOMES, TOGETHER = 2, 8  # Draws of D by each network, and how many of all draws are learnt at a time
Verdict = Literal["rest_pays", "rest_does_not_pay", "contradicted", "no_model"]


@dataclass(frozen=True)
class Finishing:
    """Whether to finish a running experiment, and why.

    Attributes:
        reason: ``rest_pays``, or ``rest_does_not_pay`` beside the next experiment; the experiments have
            ``contradicted`` the model, or there is ``no_model`` yet.
        trial: Its number.
        rest: The share of the cost of an experiment that is still to come.
        predicted: The mean of its reward given what was measured, in the reward's unit.
        low: The lower end of the 95 % interval of that, over noise and networks.
        high: Its upper end.
        chance: The probability that it exceeds the expected reward of the recommended setting.
        value: V, the expected gain of the recommendation by finishing.
        instead: V', that by the next experiment.
    """

    reason: Verdict
    trial: int
    rest: float
    predicted: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    chance: float = float("nan")
    value: float = float("nan")
    instead: float = float("nan")

    @property
    def stop(self) -> bool:
        """Whether to stop it."""
        return self.reason == "rest_does_not_pay"

    def __str__(self) -> str:
        """One or two sentences."""
        left = f"trial {self.trial} would end at {self.predicted:.4g} ({self.low:.4g} to {self.high:.4g})"
        left += f", with a probability of {100 * self.chance:.0f} % above the recommended setting. "
        left += f"Finishing it for {100 * self.rest:.0f} % of an experiment would improve the recommendation "
        left += f"by {self.value:.3g}, the next experiment by {self.instead:.3g}"
        return {
            "rest_pays": f"Go on: {left}",
            "rest_does_not_pay": f"Stop: {left}",
            "contradicted": f"Go on with trial {self.trial}, or look at the graph: the experiments "
            "contradict the model, so that what is left to learn is not known",
            "no_model": f"Go on with trial {self.trial}: there is no model yet",
        }[self.reason]


@torch.no_grad()
def finishing(
    objective: CausalObjective,
    recommended: Recommendation,
    trial: int,
    settings: Tensor,
    measured: Mapping[str, float],
    proposed: Tensor,
    rest: float,
) -> Finishing:
    """Whether to finish a trial at settings (k,) with `measured` nodes, beside the next one at `proposed`
    (k,), under the objective that found the recommendation.
    """
    if objective.surrogate.contradicted():
        return Finishing("contradicted", trial, rest)
    networks, noise = objective.claimed.network, objective.claimed.noise
    fixed = {name: noise.new_tensor(value) for name, value in measured.items()}
    rewards = networks.reward(networks.propagate(settings.unsqueeze(0).to(noise), noise, fixed)).flatten()
    low, high = (float(rewards.quantile(end)) for end in ENDS)
    chance = float((rewards > recommended.predicted).double().mean())
    rivals = _rivals(objective, recommended)
    networks = objective.surrogate.plausible(MEMBERS, objective.seed + 30)
    noise = objective.surrogate.draws(DRAWS + MEMBERS * OUTCOMES, objective.seed + 31)
    value = gain_by(networks, noise, settings.to(noise), fixed, rivals)
    instead = gain_by(networks, noise, proposed.to(noise), {}, rivals)
    pays = value >= rest * instead or chance >= UNLIKELY
    reason: Verdict = "rest_pays" if pays else "rest_does_not_pay"
    return Finishing(reason, trial, rest, float(rewards.mean()), low, high, chance, value, instead)


def _rivals(objective: CausalObjective, recommended: Recommendation) -> Tensor:
    """The recommended action and those that are best in some plausible network, (P, k)."""
    region, visited = objective.region(), objective.visited[objective.allowed(objective.visited)]
    points = region.finite()
    points = region.units(region.spread(POINTS, objective.seed) if points is None else points)
    points = torch.cat([recommended.action.unsqueeze(0), visited, points])
    best = objective.model.posterior(points.unsqueeze(-2)).values[..., 0, 0].argmax(-1)
    return points[torch.cat([best.new_zeros(1), best]).unique()]


def gain_by(
    networks: PlausibleNetworks, noise: Tensor, action: Tensor, fixed: Mapping[str, Tensor], rivals: Tensor
) -> float:
    """V of measuring the nodes that are not `fixed` at settings (k,), for a choice among `rivals` (P, k)."""
    noise, single = noise.split([DRAWS, MEMBERS * OUTCOMES])
    outcomes = networks.propagate(action.unsqueeze(0), single.reshape(MEMBERS, 1, OUTCOMES, -1), fixed)
    outcomes = outcomes[:, 0].flatten(0, 1).unsqueeze(-2)
    means = []
    for values in outcomes.split(TOGETHER):
        rows = action.expand(len(values), 1, -1)
        informed = networks.conditioned(rows, values, 0, tuple(fixed))
        points = rivals.expand(len(values), *rivals.shape)
        means.append(informed.reward(informed.propagate(points, noise)).mean((0, -1)))
    expected = torch.cat(means)
    return float(expected.amax(-1).mean() - expected.mean(0).amax())
