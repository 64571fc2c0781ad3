"""Scenarios written by hand, and the objective that counts them."""

import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios


class Counted(CountObjective):
    """The share of scenarios written by hand; without an alteration nothing is desired."""

    def appraise(self, actions):
        return [Appraisal(chance(value), chance(0.0)) for value in self.share(actions).tolist()]


def cases(names, *boxes):
    """One case for each box, {name: (lower, upper)}, or the same range for all variables."""
    return [
        RehearsalCase(str(place), {}, {name: box[name] if isinstance(box, dict) else box for name in names})
        for place, box in enumerate(boxes)
    ]


def bands(intervals, *shifts, direction=(1.0,)):
    """One scenario for each interval [l, r], desired where l <= direction' (z - shift) <= r; one case for
    each shift of all variables.
    """
    line = torch.tensor(direction, dtype=torch.float64)
    ends = torch.tensor(intervals, dtype=torch.float64)
    away = torch.tensor(shifts or (0.0,), dtype=torch.float64) * line.sum()
    gains = torch.stack([line, -line]).expand(len(ends), 2, len(line)).clone()
    slack = torch.stack([ends[:, 1:] + away, -ends[:, :1] - away], -1)
    return Scenarios(gains, slack)
