"""Credible bounds: where the true probability of success lies, by quantiles over the models of a posterior.

The success probability of an alteration depends on the model,

    p(theta) = P(Y in S | theta, x, z),        theta = (graph, parameters) ~ p(theta | D),

and there are two questions about it. Theorem 7 of Qin et al. (`certificate`) bounds the posterior *mean*
E[p(theta) | D] up to the error of counting scenarios. If the model is right, the *truth* is p(theta_0) for
one theta_0, which given the data is distributed as a draw from the posterior. A bound for the truth therefore
consists of quantiles of p(theta); its width is that of the posterior, and more scenarios do not narrow it.

K models are drawn. Given the model the outcomes are normal and p(theta) needs no scenarios: an interval has
a closed form, two outcomes a sum over the edges of the region, more outcomes quasi-Monte Carlo
(`objectives.region_probability`). The quantile of order q is the order statistic q (K + 1), interpolated. The
truth and the K draws are exchangeable under the posterior: the truth has each rank among the K + 1 with
probability 1 / (K + 1), so that the interval between the orders (1 - level) / 2 and (1 + level) / 2 holds it
with probability `level` for every K, not only in the limit, wherever q (K + 1) is a whole number. The
one-sided bound is the quantile of order 1 - level.

That statement is an average over truths drawn from the prior and data drawn from them. For one fixed truth,
whose noise is far from what the prior expects, say, coverage can be above or below the level, above all with
few rows. A wrong set of graphs, nonlinear equations and a world that has just changed are not covered.

Source: Gelman et al., Bayesian Data Analysis (2013), Sec. 2.3 (quantiles of the posterior) and 3.6; Hyndman
and Fan (1996), definition 6; Qin et al. (2023), Thm. 7 (the bound for the posterior mean). The bound is ours.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.certificate import Certificate, PacBound, decided, sample_seed
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.scenario_success import success
from rehearsal_torch.objectives.success_probability import MODELS, STAGES
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.structural.sampled_models import ScenarioModel
from rehearsal_torch.surrogates.surrogate import Surrogate


def fewest_models(level: float) -> int:
    """The smallest K of which both ends of the interval are order statistics."""
    return math.ceil(2 / (1 - level) - 1 - 1e-9)


def quantiles(draws: Tensor, orders: Tensor) -> Tensor:
    """Quantiles by the order statistics q (K + 1), interpolated: draws (K, ...), orders (n,) -> (n, ...)."""
    ordered, place = draws.sort(0).values, (orders * (len(draws) + 1) - 1).clamp(0, len(draws) - 1)
    below = place.floor().long().clamp_max(max(len(draws) - 2, 0))
    share = (place - below).reshape(-1, *[1] * (draws.ndim - 1))
    return torch.lerp(ordered[below], ordered[(below + 1).clamp_max(len(draws) - 1)], share)


class CredibleBound(Certificate):
    """Quantiles of the success probability over posterior models, beside the bound for its posterior mean.

    Args:
        models: K, the number of models.
        level: The posterior probability that the interval holds the truth.
        n: The number of scenarios of the bound for the mean, as in `PacBound`.
        delta: Its risk.
        seed: Determines models and scenarios, together with the case's identity. The scenarios are those of
            `PacBound` with the same seed.

    Raises:
        ValueError: if the level is not inside (0, 1), there are too few models for it, or `PacBound` refuses
            n or delta.
    """

    def __init__(
        self, models: int = 400, level: float = 0.95, n: int = 1000, delta: float = 0.05, seed: int = 0
    ) -> None:
        if not 0 < level < 1:
            raise ValueError(f"expected 0 < level < 1; got {level}: 0.95 asks for 95 % of the posterior")
        if models < fewest_models(level):
            raise ValueError(
                f"expected at least {fewest_models(level)} models for level {level}; got {models}: the ends "
                "of the interval would lie beyond the smallest and the largest of them; raise models or "
                "lower level"
            )
        self.models, self.level, self.seed = models, level, seed
        self.mean_bound = PacBound(n, delta, seed)

    def check(self, surrogate: Surrogate) -> None:
        """Checks that models can be drawn.

        Raises:
            ValueError: if the surrogate has no posterior over models with normal outcomes.
        """
        if not isinstance(surrogate, RehearsalSurrogate) or not surrogate.has_responses:
            raise _no_posterior(surrogate)

    @torch.no_grad()
    def __call__(
        self, surrogate: RehearsalSurrogate, objective: Candidates[Any], decision: Decision
    ) -> Mapping[str, float | str]:
        """Of the true probability: the interval ``truth_lower``, ``truth_upper``, the one-sided bound
        ``truth_least``, ``truth_median`` and ``truth_std``, ``models`` and ``level``. Of the posterior mean:
        everything that `PacBound` returns, if the surrogate draws scenarios. ``truth_of`` and ``of`` say
        which is which.

        Raises:
            ValueError: see `decided`; or if the surrogate has no posterior over models with normal outcomes.
        """
        case, names, values = decided(objective, decision)
        responses = surrogate.responses(names, self.models, STAGES * sample_seed(self.seed, case) + MODELS)
        if responses is None:
            raise _no_posterior(surrogate)
        contexts = surrogate.task.given([case]).to(responses.constant)
        actions = values.reshape(1, -1).to(responses.constant)
        drawn = success(responses, surrogate.task.region, contexts, actions)[:, 0]
        half = (1 - self.level) / 2
        lower, least, median, upper = quantiles(
            drawn, drawn.new_tensor([half, 2 * half, 0.5, 1 - half])
        ).tolist()
        truth: dict[str, float | str] = {
            "truth_of": "true probability of a desired outcome, if the model is right",
            "truth_lower": lower,
            "truth_upper": upper,
            "truth_least": least,
            "truth_median": median,
            "truth_std": float(drawn.std()),
            "models": self.models,
            "level": self.level,
        }
        if not isinstance(surrogate, ScenarioModel):
            return truth
        of_mean = self.mean_bound(surrogate, objective, decision)
        return {"of": "posterior mean of the probability of a desired outcome", **of_mean, **truth}


def _no_posterior(surrogate: Surrogate) -> ValueError:
    return ValueError(
        "expected a posterior from which models with normal outcomes can be drawn; got "
        f"{type(surrogate).__name__}, which has none: choose surrogate=structural_posterior or "
        "surrogate=linear_structural, or leave certificate=credible_bound out"
    )
