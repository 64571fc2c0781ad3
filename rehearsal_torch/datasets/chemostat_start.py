"""Days of a chemostat, from its differential equations: the context in which one day is played.

    N' = delta (N_in - N) - F_P P,   P' = F_P P - F_B (beta J + A) / eps - delta P,   E' = R_E - R_J - delta E,   J' = -(m + delta) J,
    A' = beta R_J - (m + delta) A,   D' = m (J + A) - delta D,   R_E = F_B A,   R_J(t) = R_E(t - theta) e^{-delta theta},      theta = 1 day,

from N = 41.3, P = 2.716, J = 1.23, A = 6.15, D = 0, by Euler steps of a hundredth of a day. Predator and prey circle around each other.

Source: Blasius et al. (2020) in the form of Aglietti et al. (2021), released code (tau = 0: what hatches is adult at once).
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from rehearsal_torch.datasets.chemostat_laws import BETA, DEATH, DILUTION, POWER, PREDATOR_HALF, PREDATOR_RATE, PREY_HALF, PREY_RATE

INFLOW, YIELD, DELAY = 80.0, 0.25, 1.0
STEPS_A_DAY = 100
DAYS = 256


@lru_cache(maxsize=1)
def equation_states() -> Tensor:
    """N, P and D of 256 consecutive days, (256, 3)."""
    nitrogen, prey, young, adult, dead = 41.3, 2.716, 1.23, 6.15, 0.0
    step, laid, days = 1 / STEPS_A_DAY, [], []
    for place in range(DAYS * STEPS_A_DAY):
        if place % STEPS_A_DAY == 0:
            days.append((nitrogen, prey, dead))
        uptake = PREY_RATE * nitrogen / (PREY_HALF + nitrogen)
        grazing = PREDATOR_RATE * prey**POWER / (PREDATOR_HALF**POWER + prey**POWER)
        laid.append(grazing * adult)
        late = place - round(DELAY * STEPS_A_DAY)
        hatched = laid[late] * math.exp(-DILUTION * DELAY) if late >= 0 else 0.0
        nitrogen, prey, young, adult, dead = (
            nitrogen + step * (DILUTION * (INFLOW - nitrogen) - uptake * prey),
            max(0.0, prey + step * (uptake * prey - grazing * (BETA * young + adult) / YIELD - DILUTION * prey)),
            young - step * (DEATH + DILUTION) * young,
            adult + step * (BETA * hatched - (DEATH + DILUTION) * adult),
            dead + step * (DEATH * (young + adult) - DILUTION * dead),
        )
    return torch.tensor(days, dtype=torch.float64)
