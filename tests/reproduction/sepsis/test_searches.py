import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from reproduction.sepsis.episode_rows import STAGES, Case
from reproduction.sepsis.facility_location import FacilityLocation
from reproduction.sepsis.searches import (
    ASTAR,
    BOUND,
    DEFAULT,
    FACILITY,
    HORIZON,
    Planned,
    of_size,
    planned,
    search,
    tasks,
)

POOL = Table.observed(("x",), torch.zeros(3, 1))


def test_the_axes_are_those_of_the_paper_with_all_else_as_usual():
    plan = {stage: [each.case for each in planned(stage)] for stage in STAGES}
    assert {case.constant for case in plan["lipschitz"]} >= {0.8, 1.0, 1.2}
    assert {case.size for case in plan["samples"]} >= {100, 2000}
    assert {case.changes for case in plan["changes"] if case.search == ASTAR} >= {1, 2, 3, 4}
    assert {case.anchors for case in plan["anchors"]} == {
        of_size("mc_lipschitz"),
        of_size("mc_uniform"),
        of_size("facility_location"),
    }
    for cases in plan.values():
        assert {case.horizon for case in cases} == {HORIZON}
    assert DEFAULT in plan["lipschitz"]
    assert DEFAULT in plan["samples"]
    assert DEFAULT in plan["changes"]


def test_every_case_has_a_search_and_limits_are_passed_on():
    for stage in STAGES:
        for each in planned(stage):
            assert search(each.case, POOL, 7.0).budget_s == 7.0
    assert isinstance(search(Case(12, 3, BOUND, "", 0, 1.0), POOL), BranchAndBound)
    facility = search(Case(12, 3, ASTAR, of_size(FACILITY), 2, 1.0), POOL).anchors
    assert isinstance(facility, FacilityLocation)
    assert facility.size == 2
    with pytest.raises(ValueError, match="expected search"):
        search(Case(12, 3, "guess", "mc_lipschitz", 2, 1.0), POOL)
    with pytest.raises(ValueError, match="expected anchors"):
        search(Case(12, 3, ASTAR, "nowhere", 2, 1.0), POOL)


def test_tasks_go_episode_by_episode_and_cases_of_two_stages_are_run_once():
    one, two = Case(12, 1, BOUND, "", 0, 1.0), Case(12, 2, BOUND, "", 0, 1.0)
    plan = [Planned(one), Planned(two, 0.5), Planned(one, 0.1)]
    assert tasks(plan, 4) == [(0, one), (0, two), (1, one), (1, two), (2, one), (3, one)]
    assert Planned(one, 0.01).episodes(10) == 1


def test_the_fractions_are_those_that_time_allows():
    slow = [each for each in planned("lipschitz") if each.case.search == "astar_paper"]
    assert [(each.case.constant, each.fraction) for each in slow] == [(0.8, 0.06), (1.0, 0.06), (1.2, 0.06)]
    assert [each.fraction for each in planned("changes")][:5] == [1, 1, 1, 0.25, 0.05]
    assert {each.case.size for each in planned("changes") if each.case.search == BOUND} == {0}
    assert [each.case.changes for each in planned("truth")] == [1, 2, 3]
