import time

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.lipschitz_bound import FacilityLocation
from rehearsal_torch.studies.sepsis.episode_rows import Case
from rehearsal_torch.studies.sepsis.study import (
    ASTAR,
    BOUND,
    FACILITY,
    HORIZON,
    USUAL,
    Planned,
    of_size,
    planned,
    search,
    tasks,
)
from rehearsal_torch.studies.workers import shared

POOL = Table.observed(("x",), torch.zeros(3, 1))


def double(common, task):
    return common * task


def test_the_axes_are_those_of_the_paper_with_all_else_as_usual():
    plan = {stage: [each.case for each in cases] for stage, cases in planned().items()}
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
    assert USUAL in plan["lipschitz"]
    assert USUAL in plan["samples"]
    assert USUAL in plan["changes"]


def test_every_case_has_a_search_and_limits_are_passed_on():
    for cases in planned().values():
        for each in cases:
            assert search(each.case, POOL, 7.0).budget_s == 7.0
    assert isinstance(search(Case(12, 3, BOUND, "", 0, 1.0), POOL), BranchAndBound)
    facility = search(Case(12, 3, ASTAR, of_size(FACILITY), 2, 1.0), POOL).anchors
    assert isinstance(facility, FacilityLocation)
    assert facility.size == 2
    with pytest.raises(ValueError, match="expected search"):
        search(Case(12, 3, "guess", "mc_lipschitz", 2, 1.0), POOL)
    with pytest.raises(ValueError, match="expected anchors"):
        search(Case(12, 3, ASTAR, "nowhere", 2, 1.0), POOL)


def test_tasks_go_episode_by_episode_and_shared_cases_are_run_once():
    one, two = Case(12, 1, BOUND, "", 0, 1.0), Case(12, 2, BOUND, "", 0, 1.0)
    plan = [Planned(one), Planned(two, 0.5), Planned(one, 0.1)]
    assert tasks(plan, 4) == [(0, one), (0, two), (1, one), (1, two), (2, one), (3, one)]
    assert Planned(one, 0.01).episodes(10) == 1


def test_no_task_is_begun_after_the_deadline():
    assert list(shared(double, 3, [1, 2, 3], 1)) == [3, 6, 9]
    assert list(shared(double, 3, [1, 2, 3], 1, time.monotonic() - 1)) == []


@pytest.mark.slow
def test_processes_give_the_results_of_one():
    assert sorted(shared(double, 3, range(6), 2)) == [0, 3, 6, 9, 12, 15]
