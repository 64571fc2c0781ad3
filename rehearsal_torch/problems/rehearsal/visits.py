"""Visits: how many emergency visits follow, a count, after a home nurse and a number of calls.

    risk, distance ~ N(0, 1) (observed),
    habit ~ N(.4 risk, .6^2),
    P(nurse) = Phi(.8 habit + .3 distance),
    calls ~ N(2 + .5 habit, 1),
    visits ~ Poisson(lambda),    log lambda = 1 + .3 risk + .5 habit - .5 nurse (1 - distance)
                                              + .2 (calls - 2 - .8 risk)^2.

The nurse (0 or 1) and the calls (0 to 4) may be set together; desired are at most 2 visits. Habit makes help
and visits more likely. The nurse is of use where the distance is below 1, and the best number of calls grows
with the risk: too many are as bad as too few.

lambda is at most 30, and counts end at 80, where less than 1e-13 of the probability is left.
"""

import torch
from torch import Tensor
from torch.special import ndtr

from rehearsal_torch.problems.rehearsal.equation_world import Equation, EquationWorld, Normal, WorldTable, yes

MOST_OFTEN, MOST = 30.0, 80


def poisson(rate: Tensor) -> Tensor:
    """The chances of the counts 0 ... 80 of Poisson variables with rates (...), (..., 81)."""
    rate = rate.clamp_max(MOST_OFTEN).unsqueeze(-1)
    counts = torch.arange(MOST + 1, dtype=torch.float64)
    return (counts * rate.log() - rate - torch.lgamma(counts + 1)).exp()


def _visits(risk: Tensor, distance: Tensor, habit: Tensor, nurse: Tensor, calls: Tensor) -> Tensor:
    helped = 0.5 * nurse * (1 - distance)
    return poisson((1 + 0.3 * risk + 0.5 * habit - helped + 0.2 * (calls - 2 - 0.8 * risk).square()).exp())


class Visits(EquationWorld):
    """A count as outcome, after a yes/no action and one with bounds."""

    table = WorldTable(
        equations={
            "risk": Equation(noise=Normal(1.0)),
            "distance": Equation(noise=Normal(1.0)),
            "habit": Equation(lambda risk: 0.4 * risk, Normal(0.6)),
            "nurse": yes(lambda habit, distance: ndtr(0.8 * habit + 0.3 * distance)),
            "calls": Equation(lambda habit: 2 + 0.5 * habit, Normal(1.0)),
            "visits": Equation(_visits, levels=tuple(map(float, range(MOST + 1)))),
        },
        context=("risk", "distance"),
        bounds={"nurse": {"values": [0, 1]}, "calls": [0.0, 4.0]},
        region={"visits": (None, 2.0)},
        together=(("nurse", "calls"),),
        source="simulated emergency visits, rehearsal_torch/problems/rehearsal/visits.py",
    )
