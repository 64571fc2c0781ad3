"""Sequential test (e-process) of whether outcomes, as they arrive, contradict the claims made of them.

Round t claims that a success has the chance p_t, and a distribution of the outcomes; then s_t, 0 or 1, is
observed, and values whose two-sided p-value in that distribution is v_t. The alternatives are, for d and k of
a grid,

    (q_t / p_t)^{s_t} ((1 - q_t) / (1 - p_t))^{1 - s_t},   q_t = sigmoid(logit p_t + d),      and
    k v_t^{k - 1},                                         0 < k < 1,

each with expectation 1, at most, if the claims are true; so has any product of them over the rounds from j
on, L_jd(t), and any mean of such products. With T rounds ahead,

    E(t) = 1 / T sum_j mean_d L_jd(t),        L_jd = 1 before round j,

exceeds 1 / level at any time with at most the probability `level`, however the actions were chosen (Ville's
inequality). Claims that were right for long and then are not are found as fast as those that are wrong from
the start, but for the factor T. The begin is the last j whose mean_d L_jd is within `NEARLY` of the largest:
a row from before does more harm to a new fit than one row less. Used by `loop`.

Chances are taken as at least `NEAR` from 0 and 1 and p-values as at least `LEAST`, so that no single outcome
refutes a model.

Source: Ville (1939); Ramdas et al. (2023), Sec. 3 (mixtures); Vovk and Wang (2021) (k v^{k - 1}); Pollak and
Siegmund (1975) for the mixture over where it begins.
"""

import math

import numpy as np

LEVEL, NEAR, LEAST, NEARLY = 0.01, 0.02, 1e-5, 20.0
SHIFTS, POWERS = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0]), np.array([0.1, 0.3, 0.6])


class ClaimWatch:
    """The test so far, of at most `rounds` rounds.

    Attributes:
        begin: The round, counted from 0, since which outcomes contradict the claims; None while they do not.
    """

    def __init__(self, rounds: int, level: float = LEVEL) -> None:
        self.rounds, self.level = max(rounds, 1), level
        self.claimed, self.succeeded = list[float](), list[bool]()
        self._logs = np.zeros((0, len(SHIFTS) + len(POWERS)))
        self.begin: int | None = None

    def see(self, claimed: float, success: bool, p_value: float | None = None) -> None:
        """Adds a round; the p-value of its outcomes is None where no distribution was claimed."""
        self.claimed.append(claimed)
        self.succeeded.append(success)
        chance = min(max(claimed, NEAR), 1 - NEAR)
        shifted = 1 / (1 + np.exp(-(math.log(chance / (1 - chance)) + SHIFTS)))
        score = np.log(shifted / chance) if success else np.log((1 - shifted) / (1 - chance))
        log_p = 0.0 if p_value is None else math.log(max(p_value, LEAST))
        tails = np.zeros(len(POWERS)) if p_value is None else np.log(POWERS) + (POWERS - 1) * log_p
        self._logs = np.vstack([self._logs, np.zeros(self._logs.shape[1])]) + np.concatenate([score, tails])
        by_begin = np.logaddexp.reduce(self._logs, 1) - math.log(self._logs.shape[1])
        remaining = max(self.rounds - len(by_begin), 0)
        evidence = np.logaddexp.reduce([*by_begin, *([math.log(remaining)] if remaining else [])])
        if self.begin is None and evidence - math.log(self.rounds) >= -math.log(self.level):
            self.begin = int(np.flatnonzero(by_begin >= by_begin.max() - math.log(NEARLY))[-1])
