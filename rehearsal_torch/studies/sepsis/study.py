"""What the study of the sepsis cohort runs: which searches, on how many episodes, along which axes.

Every axis of Fig. 2 and Fig. 5 is a list of cases that differ in one setting. Three searches are compared:

- ``astar``, the project's A* (anchors of a node's own time, exact values where the rest is fixed, greedy
  start, batches);
- ``astar_paper``, A* as published (Eq. 11 for each child, one node at a time, no exact values, no greedy
  start), but for anchors by time step instead of pooled, which costs T^2 fewer distances; its expanded nodes
  are those that the paper's branching factors count;
- ``branch_and_bound``, which needs no anchors.

A search stops after `LIMIT` seconds; its row then says ``proven=False``, and its branching factor is a lower
bound.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, Fig. 2 and App. F, Fig. 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.lipschitz_bound import Anchors, FacilityLocation, MonteCarlo
from rehearsal_torch.studies.sepsis.episode_rows import Case

HORIZON, LIMIT = 12, 60.0
CONSTANTS, SAMPLES, SIZES = (0.8, 0.9, 1.0, 1.1, 1.2), (100, 200, 500, 1000, 2000), (500, 2000, 5000)
ASTAR, PAPER, BOUND = "astar", "astar_paper", "branch_and_bound"
LIPSCHITZ, UNIFORM, FACILITY = "mc_lipschitz", "mc_uniform", "facility_location"
# What is left open on an axis is at these values.
USUAL = Case(HORIZON, 3, ASTAR, LIPSCHITZ, 1000, 1.0)


@dataclass(frozen=True)
class Planned:
    """A case and its share of the study.

    Attributes:
        case: What is searched how.
        share: The part of the study's episodes that it is run on: 1 for all, less for what is slow.
    """

    case: Case
    share: float = 1.0

    def episodes(self, count: int) -> int:
        """How many of `count` episodes, at least 1."""
        return max(1, round(self.share * count))


def planned() -> dict[str, list[Planned]]:
    """Stage to cases, each axis in rising order; cases that two axes share stand in both."""
    bound = Case(HORIZON, 3, BOUND, "", 0, 1.0)
    slow = replace(USUAL, search=PAPER)
    lipschitz = [Planned(replace(USUAL, constant=constant)) for constant in CONSTANTS]
    lipschitz += [Planned(replace(slow, constant=constant), 0.06) for constant in (0.8, 1.0, 1.2)]
    lipschitz += [Planned(replace(bound, constant=constant)) for constant in CONSTANTS]
    samples = [Planned(replace(USUAL, size=size), 1.0 if size < 2000 else 0.25) for size in SAMPLES]
    samples += [Planned(replace(slow, size=size), 0.06) for size in (200, 500, 1000, 2000)]
    changes = [
        Planned(replace(USUAL, changes=changes), {4: 0.25, 5: 0.05}.get(changes, 1.0))
        for changes in (1, 2, 3, 4, 5)
    ]
    changes += [
        Planned(replace(slow, changes=changes), 0.06 if changes < 4 else 0.03) for changes in (1, 2, 3, 4)
    ]
    changes += [Planned(replace(bound, changes=changes)) for changes in (1, 2, 3, 4, 5, 6)]
    anchors = [
        Planned(replace(USUAL, anchors=of_size(name), size=size), 1.0 if size < 5000 else 0.25)
        for name in (LIPSCHITZ, UNIFORM)
        for size in SIZES
    ]
    anchors += [Planned(replace(USUAL, anchors=of_size(FACILITY), size=size), 0.05) for size in (500, 2000)]
    return {"lipschitz": lipschitz, "samples": samples, "changes": changes, "anchors": anchors}


def of_size(strategy: str) -> str:
    """What rows call anchors that were drawn until the set had M states, instead of from M sequences."""
    return f"{strategy}_of_size"


def search(case: Case, pool: Table, limit: float = LIMIT, seed: int = 0) -> Search[CounterfactualReturn]:
    """The search of a case.

    Args:
        case: What is searched how.
        pool: Training transitions, among whose states Facility-Location chooses.
        limit: Wall-clock seconds an episode may take.
        seed: Decides the anchors.

    Raises:
        ValueError: for a search or a strategy that is none of the study's.
    """
    if case.search == BOUND:
        return BranchAndBound(budget_s=limit)
    anchors = _anchors(case, pool, seed)
    if case.search == ASTAR:
        return AStar(anchors, budget_s=limit)
    if case.search == PAPER:
        return AStar(anchors, exact=False, lookahead=True, batch=1, incumbent=False, budget_s=limit)
    raise ValueError(f"expected search {ASTAR}, {PAPER} or {BOUND}; got {case.search!r}")


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
    """(episode's number, case) for the whole plan, each once: branch and bound first, which is quick, then
    episode by episode.

    A study that ends early so has nearly equally many episodes of every case of A*.
    """
    share: dict[Case, int] = {}
    for each in plan:
        share[each.case] = max(share.get(each.case, 0), each.episodes(count))
    every = [
        (episode, case) for episode in range(count) for case, episodes in share.items() if episode < episodes
    ]
    return sorted(every, key=lambda task: task[1].search != BOUND)
