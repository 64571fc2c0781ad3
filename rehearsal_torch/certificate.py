"""Certificates: bounds on the probability of success, from sampled scenarios or the models of a posterior.

**PAC bounds.** Of n new scenarios, sampled from the posterior after the alteration was selected, n_o fail.
With p = 1 - n_o / n and F(.; a, b) the beta distribution function, the posterior probability of success lies,
up to a risk delta, in

    [max(s_l, p - h), min(s_u, p + h)],       h = sqrt(ln(2 / delta) / (2 n)),
    s_l = 1 - F^-1(1 - delta / 2n; n_o + 1, n - n_o)  (0 where n_o = n),
    s_u = 1 - F^-1(delta / 2n; n_o, n - n_o + 1)      (1 where n_o = 0).

h is Hoeffding's bound; s is the bound of the scenario approach, tighter near 0 and 1. Both hold for any
distribution of the outcomes. They are about the posterior probability given the data and the context, not
about the true one: a wrong model is certified as readily as a right one. By the proof each end holds with
probability 1 - delta, so that a union bound gives 1 - 2 delta for the interval; that it holds with 1 - delta
has been verified numerically only: summed over the binomial distribution of the failures, its coverage at
delta = .05 is at least .99 for n = 10, 50 and 1000 and every p.

**Credible bounds.** The success probability of an alteration depends on the model,

    p(theta) = P(Y in S | theta, x, z),        theta = (graph, parameters) ~ p(theta | D),

and the bound above is one of the posterior *mean* E[p(theta) | D]. If the model is right, the *truth* is
p(theta_0) for one theta_0, which given the data is distributed as a draw from the posterior. A bound for the
truth therefore consists of quantiles of p(theta); its width is that of the posterior, and more scenarios do
not narrow it.

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

Source: Qin et al. (2023), Thm. 7 and its proof (App. D); Gelman et al., Bayesian Data Analysis (2013), Sec.
2.3 (quantiles of the posterior) and 3.6; Hyndman and Fan (1996), definition 6. The credible bound is ours.
"""

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from scipy.special import betainccinv, betaincinv
from torch import Tensor

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.scenario_success import success
from rehearsal_torch.objectives.success_probability import MODELS, STAGES, SuccessProbability, fresh
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.structural.model_samples import ScenarioModel
from rehearsal_torch.surrogates.surrogate import Surrogate


@dataclass(frozen=True)
class Bound:
    """An interval for the probability of success: the fraction of scenarios that succeed, the intersection of
    the two intervals that follow, Hoeffding's, which may reach beyond [0, 1], and the scenario approach's.
    """

    share: float
    lower: float
    upper: float
    hoeffding_lower: float
    hoeffding_upper: float
    scenario_lower: float
    scenario_upper: float


def pac_bound(failures: int, n: int, delta: float = 0.05) -> Bound:
    """The PAC bound on the probability of success if `failures` of n scenarios fail, at risk delta."""
    if n < 1 or not 0 <= failures <= n:
        raise ValueError(
            f"expected n >= 1 and 0 <= failures <= n; got failures={failures} of n={n}: draw scenarios and "
            "count those that fail"
        )
    if not 0 < delta < 1:
        raise ValueError(f"expected 0 < delta < 1; got {delta}: 0.05 asks for 95 % confidence")
    p, h, risk = 1 - failures / n, math.sqrt(math.log(2 / delta) / (2 * n)), delta / (2 * n)
    # The upper quantile is exact in the tail: 1 - risk would lose digits for large n.
    s_l = 1 - float(betainccinv(failures + 1, n - failures, risk)) if failures < n else 0.0
    s_u = 1 - float(betaincinv(failures, n - failures + 1, risk)) if failures > 0 else 1.0
    return Bound(p, max(s_l, p - h), min(s_u, p + h), p - h, p + h, s_l, s_u)


# From surrogate, objective and decision to a certificate: name to number or text.
Certify = Callable[[Surrogate, Any, Decision], Mapping[str, float | str]]


class Certificate(ABC):
    """Bounds on the probability of success of a decision, or of no action if nothing is recommended."""

    @abstractmethod
    def check(self, surrogate: Surrogate) -> None:
        """Raises a ValueError, before anything is fitted, if a surrogate's decisions cannot be certified."""

    @abstractmethod
    def __call__(
        self, surrogate: Any, objective: Candidates[Any], decision: Decision
    ) -> Mapping[str, float | str]:
        """The bounds, name to number, and texts that say what is bounded; ValueError as `decided`."""


def decided(objective: Candidates[Any], decision: Decision) -> tuple[RehearsalCase, tuple[str, ...], Tensor]:
    """The one case of an objective, with the names and values (k,) that a decision sets in it.

    Raises:
        ValueError: if there are several cases, or a variable that is set may not be set in the case.
    """
    if len(objective.cases) != 1:
        raise ValueError(
            f"expected one case; got {len(objective.cases)}: let the search decide one at a "
            "time, search.batch_size=1"
        )
    (case,) = objective.cases
    case.check(decision.alteration)
    if decision.alteration is None:
        return case, (), torch.zeros(0, dtype=torch.float64)
    return case, tuple(decision.alteration.names), decision.alteration.values


def sample_seed(seed: int, case: RehearsalCase) -> int:
    """The seed of the samples for a case: it differs between seeds and between identities."""
    return 2**32 * seed + zlib.crc32(case.identity.encode())


OF_MEAN = "posterior mean of the probability of a desired outcome: the error of counting, not the truth"


class PacBound(Certificate):
    """The PAC bound for a decision, from scenarios that were used neither to select nor to evaluate it.

    Args:
        n: The number of scenarios.
        delta: The risk.
        seed: Determines the scenarios, together with the case's identity.
    """

    def __init__(self, n: int = 1000, delta: float = 0.05, seed: int = 0) -> None:
        pac_bound(0, n, delta)
        self.n, self.delta, self.seed = n, delta, seed

    def check(self, surrogate: Surrogate) -> None:
        """ValueError if the surrogate is no posterior over rehearsal models, which draws scenarios."""
        if not isinstance(surrogate, ScenarioModel):
            raise ValueError(
                f"expected a surrogate that draws scenarios; got {type(surrogate).__name__}: choose "
                "surrogate=structural_posterior, or leave certificate=pac_bound out"
            )

    @torch.no_grad()
    def __call__(
        self, surrogate: ScenarioModel, objective: Candidates[SuccessProbability], decision: Decision
    ) -> Mapping[str, float | str]:
        """The fields of `Bound`, ``failures``, ``n``, ``delta``, and ``of``, which says what is bounded."""
        case, names, values = decided(objective, decision)
        scenarios = fresh(surrogate, [case], names, self.n, sample_seed(self.seed, case))
        failures = int((~scenarios.desired(values.reshape(1, -1))).sum())
        return {
            "of": OF_MEAN,
            **asdict(pac_bound(failures, self.n, self.delta)),
            "failures": failures,
            "n": self.n,
            "delta": self.delta,
        }


def fewest_models(level: float) -> int:
    """The smallest K of which both ends of the interval are order statistics."""
    return math.ceil(2 / (1 - level) - 1 - 1e-9)


def quantiles(draws: Tensor, orders: Tensor) -> Tensor:
    """Quantiles by the order statistics q (K + 1), interpolated: draws (K, ...), orders (n,) -> (n, ...)."""
    ordered, position = draws.sort(0).values, (orders * (len(draws) + 1) - 1).clamp(0, len(draws) - 1)
    rank = position.floor().long().clamp_max(max(len(draws) - 2, 0))
    share = (position - rank).reshape(-1, *[1] * (draws.ndim - 1))
    return torch.lerp(ordered[rank], ordered[(rank + 1).clamp_max(len(draws) - 1)], share)


class CredibleBound(Certificate):
    """Quantiles of the success probability over posterior models, beside the bound for its posterior mean.

    Args:
        models: K, the number of models.
        level: The posterior probability that the interval holds the truth.
        n: The number of scenarios of the bound for the mean, as in `PacBound`.
        delta: Its risk.
        seed: Determines models and scenarios, as in `PacBound`, together with the case's identity.

    Raises:
        ValueError: if a value is out of range, or there are too few models for the level.
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
        """ValueError if the surrogate has no posterior over models with normal outcomes."""
        if not isinstance(surrogate, RehearsalSurrogate) or not surrogate.has_responses:
            raise _no_posterior(surrogate)

    @torch.no_grad()
    def __call__(
        self, surrogate: RehearsalSurrogate, objective: Candidates[Any], decision: Decision
    ) -> Mapping[str, float | str]:
        """Of the true probability: the interval ``truth_lower``, ``truth_upper``, the one-sided bound
        ``truth_least``, ``truth_median`` and ``truth_std``, ``models`` and ``level``. Of the posterior mean:
        everything that `PacBound` returns, if the surrogate draws scenarios.
        """
        case, names, values = decided(objective, decision)
        responses = surrogate.responses(names, self.models, STAGES * sample_seed(self.seed, case) + MODELS)
        if responses is None:
            raise _no_posterior(surrogate)
        contexts = surrogate.task.given([case]).to(responses.constant)
        actions = values.reshape(1, -1).to(responses.constant)
        probabilities = success(responses, surrogate.task.region, contexts, actions)[:, 0]
        tail = (1 - self.level) / 2
        lower, least, median, upper = quantiles(
            probabilities, probabilities.new_tensor([tail, 2 * tail, 0.5, 1 - tail])
        ).tolist()
        truth: dict[str, float | str] = {
            "truth_of": "true probability of a desired outcome, if the model is right",
            "truth_lower": lower,
            "truth_upper": upper,
            "truth_least": least,
            "truth_median": median,
            "truth_std": float(probabilities.std()),
            "models": self.models,
            "level": self.level,
        }
        if not isinstance(surrogate, ScenarioModel):
            return truth
        return {**self.mean_bound(surrogate, objective, decision), **truth}


def _no_posterior(surrogate: Surrogate) -> ValueError:
    return ValueError(
        "expected a posterior from which models with normal outcomes can be drawn; got "
        f"{type(surrogate).__name__}, which has none: choose surrogate=structural_posterior or "
        "surrogate=linear_structural, or leave certificate=credible_bound out"
    )
