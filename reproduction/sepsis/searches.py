"""The searches of the sepsis study: cases along the axes of the figures, and the search of a case.

An axis of Fig. 2 or Fig. 5 is a list of cases that differ in one setting (study.yaml). Three searches are
compared:

- ``astar``, the A* of this package: anchors by time step, exact values once the remaining actions are fixed,
  a greedy incumbent, and batches of nodes;
- ``astar_paper``, A* as published (Eq. 11 for each child, one node at a time, no exact values, no incumbent),
  except for anchors by time step instead of pooled ones, which saves a factor T^2 of distances; it expands
  the nodes that the paper's branching factors count;
- ``branch_and_bound``, which needs no anchors.

A search that exceeds the time limit returns the best sequence so far; its row then has ``proven=False``, and
its branching factor is a lower bound.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, Fig. 2 and App. F, Fig. 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.astar import Anchors, AStar, MonteCarlo
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from reproduction.plan import study
from reproduction.sepsis.episode_rows import Case
from reproduction.sepsis.facility_location import FacilityLocation

ASTAR, PAPER, BOUND = "astar", "astar_paper", "branch_and_bound"
LIPSCHITZ, UNIFORM, FACILITY = "mc_lipschitz", "mc_uniform", "facility_location"
_FACTS = study("sepsis")["facts"]
HORIZON, REWARD = int(_FACTS["horizon"]), dict(_FACTS["reward"])
LIMIT = float(study("sepsis")["options"]["limit_seconds"])
# The values of the settings that an axis does not vary.
DEFAULT = Case(HORIZON, search=ASTAR, **_FACTS["default"])


@dataclass(frozen=True)
class Planned:
    """A case with its number of episodes.

    Attributes:
        case: The case.
        fraction: Fraction of the study's episodes that it is run on; less than 1 for slow searches.
    """

    case: Case
    fraction: float = 1.0

    def episodes(self, count: int) -> int:
        """The number of episodes that the case is run on, at least 1.

        Args:
            count: The number of episodes of the study.
        """
        return max(1, round(self.fraction * count))


def planned(stage: str) -> list[Planned]:
    """The cases of a stage, in the order of study.yaml, which lists the values along one axis."""
    found = []
    for entry in study("sepsis")["stages"][stage]["cases"]:
        ((axis, values),) = ((key, value) for key, value in entry.items() if isinstance(value, list))
        settings = {"horizon": HORIZON, **_FACTS["default"]}
        if entry["search"] == BOUND:
            settings |= {"anchors": "", "size": 0}
        settings |= {key: value for key, value in entry.items() if key != "fraction"}
        found += [Planned(Case(**{**settings, axis: value}), entry.get("fraction", 1.0)) for value in values]
    return found


def search(case: Case, pool: Table, limit: float = LIMIT, seed: int = 0) -> Search[CounterfactualReturn]:
    """The search of a case.

    Args:
        pool: Training transitions, from whose states Facility-Location selects anchors.
        limit: Maximum wall-clock seconds of an episode.
        seed: Seed of the anchors.

    Raises:
        ValueError: for an unknown search or kind of anchors.
    """
    if case.search == BOUND:
        return BranchAndBound(budget_s=limit)
    anchors = _anchors(case, pool, seed)
    if case.search == ASTAR:
        return AStar(anchors, budget_s=limit)
    if case.search == PAPER:
        return AStar(anchors, exact=False, lookahead=True, batch=1, incumbent=False, budget_s=limit)
    raise ValueError(f"expected search {ASTAR}, {PAPER} or {BOUND}; got {case.search!r}")


def of_size(strategy: str) -> str:
    """The name of anchors drawn until the set has M states, instead of from M simulated sequences.

    Args:
        strategy: The kind of anchors.
    """
    return f"{strategy}_of_size"


def _anchors(case: Case, pool: Table, seed: int) -> Anchors:
    if case.anchors == LIPSCHITZ:
        return MonteCarlo(case.size, seed=seed)
    if case.anchors == of_size(LIPSCHITZ):
        return MonteCarlo(None, case.size, "lipschitz", seed)
    if case.anchors == of_size(UNIFORM):
        return MonteCarlo(None, case.size, "uniform", seed)
    if case.anchors == of_size(FACILITY):
        return FacilityLocation(pool, case.size, seed)
    raise ValueError(
        f"expected anchors {LIPSCHITZ}, {UNIFORM} or {FACILITY} (or these of a size); got {case.anchors!r}"
    )


def tasks(plan: Sequence[Planned], count: int) -> list[tuple[int, Case]]:
    """(index of the episode, case) for the whole plan, without duplicates.

    Branch and bound, which is fast, comes first; the rest goes episode by episode, so that an interrupted
    study has similar numbers of episodes for every case of A*.

    Args:
        plan: The cases of all stages.
        count: The number of episodes of the study.
    """
    episodes: dict[Case, int] = {}
    for each in plan:
        episodes[each.case] = max(episodes.get(each.case, 0), each.episodes(count))
    found = [(index, case) for index in range(count) for case, number in episodes.items() if index < number]
    return sorted(found, key=lambda task: task[1].search != BOUND)
