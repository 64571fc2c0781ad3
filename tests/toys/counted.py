"""Scenarios written by hand, and the objective that counts them."""

import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.objective import Appraisal, Candidates, chance
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios


class Counted(CountObjective):
    """The share of scenarios written by hand; without an alteration nothing is desired."""

    def appraise(self, actions):
        shares = self.compared_probability(actions)
        return [Appraisal(chance(value), chance(0.0)) for value in shares.tolist()]


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


def two_sets():
    """Candidate sets of one variable each in two cases: a reaches as many scenarios of the search as b, and
    fewer of the validation, by which b is chosen with half of them, at 3 and 4.
    """
    two = cases(("a", "b"), (-10.0, 10.0), (-10.0, 10.0))
    seen, few, fresh = (bands(each, 0.0, 1.0) for each in ([(0, 4), (2, 6)], [(8, 9)], [(2, 4), (8, 9)]))
    return Candidates(two, [Counted(two, ("a",), seen, few), Counted(two, ("b",), seen, fresh)])


def choose_by_validation(search, name):
    """Whether a search chooses between them as it must; `search` makes it, with settings or without."""
    found = search().batch_search(two_sets())
    assert [each.alteration.names for each in found] == [("b",), ("b",)]
    assert [float(each.alteration.values) for each in found] == [3.0, 4.0]
    assert [(each.value, each.trace["search"]) for each in found] == [(0.5, name)] * 2
    (first, _) = search(budget_s=1e-9).batch_search(two_sets())
    assert first.trace["altered"] == ["a"]
