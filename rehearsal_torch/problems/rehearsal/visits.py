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

from collections.abc import Mapping

import torch
from torch import Tensor

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.discrete_world import Among, DiscreteWorld, Gaussian, yes
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

PARENTS = {
    "risk": (),
    "distance": (),
    "habit": ("risk",),
    "nurse": ("habit", "distance"),
    "calls": ("habit",),
    "visits": ("risk", "distance", "habit", "nurse", "calls"),
}
MOST_OFTEN, MOST = 30.0, 80


class Visits(DiscreteWorld):
    """A count as outcome, after a yes/no action and one with bounds."""

    def __init__(self, size: SampleSize = SampleSize(), seed: int = 0, validation: float = 0.0) -> None:
        task = RehearsalTask(
            RehearsalGraph.of(PARENTS),
            ("risk", "distance"),
            Box.of({"nurse": {"values": [0, 1]}, "calls": [0.0, 4.0]}),
            Polytope.of({"visits": (None, 2.0)}),
            (("nurse", "calls"),),
        )
        super().__init__(task, size, seed, validation)

    def source(self) -> str:
        """Our own."""
        return "simulated emergency visits, rehearsal_torch/problems/rehearsal/visits.py"

    def law(self, name: str, values: Mapping[str, Tensor]) -> Among | Gaussian:
        """The equations above."""
        if name in ("risk", "distance"):
            return Gaussian(torch.zeros((), dtype=torch.float64), 1.0)
        if name == "habit":
            return Gaussian(0.4 * values["risk"], 0.6)
        habit = values["habit"]
        if name == "nurse":
            return yes(torch.special.ndtr(0.8 * habit + 0.3 * values["distance"]))
        if name == "calls":
            return Gaussian(2 + 0.5 * habit, 1.0)
        risk, away = values["risk"], values["calls"] - 2 - 0.8 * values["risk"]
        helped = 0.5 * values["nurse"] * (1 - values["distance"])
        return poisson((1 + 0.3 * risk + 0.5 * habit - helped + 0.2 * away.square()).exp())


def poisson(rate: Tensor) -> Among:
    """Counts of a Poisson variable with a rate (...)."""
    rate = rate.clamp_max(MOST_OFTEN)
    counts = torch.arange(MOST + 1, dtype=torch.float64)
    logs = counts * rate.unsqueeze(-1).log() - rate.unsqueeze(-1) - torch.lgamma(counts + 1)
    return Among(counts, logs.exp())
