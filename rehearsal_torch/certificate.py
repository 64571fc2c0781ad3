"""How probable success is, from counted failures.

Of n fresh scenarios of the posterior, drawn after the alteration was chosen, n_o fail. With p = 1 - n_o / n
and F(.; a, b) the beta distribution, the probability that the posterior gives to success lies, up to a risk
delta, in

    [max(s_l, p - h), min(s_u, p + h)],       h = sqrt(ln(2 / delta) / (2 n)),
    s_l = 1 - F^-1(1 - delta / 2n; n_o + 1, n - n_o)  (0 where n_o = n),
    s_u = 1 - F^-1(delta / 2n; n_o, n - n_o + 1)      (1 where n_o = 0).

h is Hoeffding's part; s is the scenario approach's part, sharper near 0 and 1. Both hold for outcomes of any
law.

What is certified is the posterior's own probability given the data and the context, not the truth: a wrong
model is certified as readily as a right one. By the proof each end holds with probability 1 - delta, so that
a union bound over both gives 1 - 2 delta; that the whole interval holds with 1 - delta is a fact of the
numbers: summed over the binomial law of the failures, its coverage at delta = .05 is at least .99 for n = 10,
50 and 1000 and every p.

Source: Qin et al. (2023), Thm. 7 and its proof (App. D).
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from scipy.stats import beta

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.success_probability import SuccessProbabilities, fresh
from rehearsal_torch.surrogates.structural.sampled_models import ScenarioModel


@dataclass(frozen=True)
class Bound:
    """An interval for the probability of success.

    Attributes:
        share: The share of scenarios that succeed.
        lower: The larger of the two lower ends; at least 0.
        upper: The smaller of the two upper ends; at most 1.
        hoeffding: Hoeffding's interval, which may reach beyond [0, 1].
        scenario: The scenario approach's interval.
    """

    share: float
    lower: float
    upper: float
    hoeffding: tuple[float, float]
    scenario: tuple[float, float]

    def to_dict(self) -> dict[str, float]:
        """Plain numbers."""
        parts = {
            "hoeffding_lower": self.hoeffding[0],
            "hoeffding_upper": self.hoeffding[1],
            "scenario_lower": self.scenario[0],
        }
        return {
            "share": self.share,
            "lower": self.lower,
            "upper": self.upper,
            **parts,
            "scenario_upper": self.scenario[1],
        }


def pac_bound(failures: int, n: int, delta: float = 0.05) -> Bound:
    """The bound on the probability of success.

    Args:
        failures: n_o, how many scenarios fail.
        n: How many there are.
        delta: The risk.

    Raises:
        ValueError: if there is no scenario, more fail than there are, or the risk is not inside (0, 1).

    Source: Qin et al. (2023), Thm. 7.
    """
    if n < 1 or not 0 <= failures <= n:
        raise ValueError(
            f"expected n >= 1 and 0 <= failures <= n; got failures={failures} of n={n}: draw scenarios and "
            "count those that fail"
        )
    if not 0 < delta < 1:
        raise ValueError(f"expected 0 < delta < 1; got {delta}: 0.05 asks for 95 % confidence")
    share, reach, risk = 1 - failures / n, math.sqrt(math.log(2 / delta) / (2 * n)), delta / (2 * n)
    # isf keeps the tail: 1 - risk would lose its digits for large n.
    low = 1 - float(beta.isf(risk, failures + 1, n - failures)) if failures < n else 0.0
    high = 1 - float(beta.ppf(risk, failures, n - failures + 1)) if failures > 0 else 1.0
    hoeffding = (share - reach, share + reach)
    return Bound(share, max(low, hoeffding[0]), min(high, hoeffding[1]), hoeffding, (low, high))


class PacBound:
    """The bound for a decision, from scenarios that neither chose nor judged it.

    Where nothing is recommended it speaks of altering nothing.

    Args:
        n: How many scenarios.
        delta: The risk.
        seed: Decides them, together with the situation's name.

    Raises:
        ValueError: if there is no scenario or the risk is not inside (0, 1).
    """

    def __init__(self, n: int = 1000, delta: float = 0.05, seed: int = 0) -> None:
        pac_bound(0, n, delta)
        self.n, self.delta, self.seed = n, delta, seed

    @torch.no_grad()
    def __call__(
        self, surrogate: ScenarioModel, objective: SuccessProbabilities, decision: Decision
    ) -> Mapping[str, float]:
        """``lower``, ``upper``, ``share``, both parts, ``failures``, ``n`` and ``delta``.

        Raises:
            ValueError: if the objective speaks of several situations, so that it is open which one the
                decision is for, or the decision sets what may not be set there.
        """
        if len(objective.cases) != 1:
            raise ValueError(
                f"expected one situation; got {len(objective.cases)}: let the search decide one at a "
                "time, search.batch_size=1"
            )
        (case,) = objective.cases
        case.check(decision.alteration)
        names = () if decision.alteration is None else decision.alteration.names
        values = (
            torch.zeros(0, dtype=torch.float64) if decision.alteration is None else decision.alteration.values
        )
        seed = 2**32 * self.seed + zlib.crc32(case.identity.encode())
        desired = fresh(surrogate, [case], names, self.n, seed).desired(values.reshape(1, -1))
        failures = int((~desired).sum())
        return {
            **pac_bound(failures, self.n, self.delta).to_dict(),
            "failures": failures,
            "n": self.n,
            "delta": self.delta,
        }
