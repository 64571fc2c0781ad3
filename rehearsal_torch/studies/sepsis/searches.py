"""The searches of the sepsis study: which ones, on how many episodes, along which axes.

Every axis of Fig. 2 and Fig. 5 is a list of cases that differ in one setting (study.yaml). Three searches are
compared:

- ``astar``, the project's A* (anchors of a node's own time, exact values where the rest is fixed, greedy
  start, batches);
- ``astar_paper``, A* as published (Eq. 11 for each child, one node at a time, no exact values, no greedy
  start), but for anchors by time step instead of pooled, which costs T^2 fewer distances; its expanded nodes
  are those that the paper's branching factors count;
- ``branch_and_bound``, which needs no anchors.

A search stops after a limit of seconds; its row then says ``proven=False``, and its branching factor is a
lower bound.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5, Fig. 2 and App. F, Fig. 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rehearsal_torch.data.table import Table
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.lipschitz_bound import Anchors, FacilityLocation, MonteCarlo
from rehearsal_torch.studies.sepsis.episode_rows import Case
from rehearsal_torch.studies.study_files import study

ASTAR, PAPER, BOUND = "astar", "astar_paper", "branch_and_bound"
LIPSCHITZ, UNIFORM, FACILITY = "mc_lipschitz", "mc_uniform", "facility_location"
_FACTS = study("sepsis").facts
HORIZON, REWARD = int(_FACTS["horizon"]), dict(_FACTS["reward"])
LIMIT = float(study("sepsis").options["limit_seconds"].default or 0)
# What is left open on an axis is at these values.
USUAL = Case(HORIZON, search=ASTAR, **_FACTS["usual"])


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


def planned(stage: str) -> list[Planned]:
    """The cases of a stage; each axis in rising order, as study.yaml has it.

    Args:
        stage: A stage that searches, or "truth".

    Raises:
        PlainFileError: for a case that study.yaml does not spell out.
    """
    found = []
    for place, entry in enumerate(study("sepsis").stages[stage].cases):
        where = f"studies/sepsis/study.yaml: stages: {stage}: cases[{place}]"
        axes = {key: values for key, values in entry.items() if isinstance(values, list)}
        if len(axes) != 1:
            raise PlainFileError(f"{where}: expected one list, the axis; got {', '.join(axes) or 'none'}")
        ((axis, values),) = axes.items()
        found += [_case({**entry, axis: value}, where) for value in values]
    return found


def _case(entry: Mapping[str, Any], where: str) -> Planned:
    usual: dict[str, Any] = {"horizon": HORIZON, "search": "", **_FACTS["usual"]}
    if entry.get("search") == BOUND:
        usual |= {"anchors": "", "size": 0}
    unknown = sorted(set(entry) - {field.name for field in fields(Case)} - {"share"})
    if unknown or entry.get("search") not in (ASTAR, PAPER, BOUND):
        raise PlainFileError(
            f"{where}: expected a search of {ASTAR}, {PAPER}, {BOUND} and fields of a case; got "
            f"{', '.join(unknown) or entry.get('search')}"
        )
    return Planned(
        Case(**{**usual, **{key: value for key, value in entry.items() if key != "share"}}),
        float(entry.get("share", 1.0)),
    )


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


def of_size(strategy: str) -> str:
    """What rows call anchors that were drawn until the set had M states, instead of from M sequences."""
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
