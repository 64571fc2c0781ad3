from reproduction.sepsis.episode_rows import Case
from reproduction.sepsis.searches import BOUND, Planned, tasks


def test_tasks_go_episode_by_episode_and_cases_of_two_stages_are_run_once():
    one, two = Case(12, 1, BOUND, "", 0, 1.0), Case(12, 2, BOUND, "", 0, 1.0)
    plan = [Planned(one), Planned(two, 0.5), Planned(one, 0.1)]
    assert tasks(plan, 4) == [(0, one), (0, two), (1, one), (1, two), (2, one), (3, one)]
    assert Planned(one, 0.01).episodes(10) == 1
