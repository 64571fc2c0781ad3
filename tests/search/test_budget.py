import math

import pytest

from rehearsal_torch.search.budget import UNLIMITED, Budget


@pytest.fixture
def clock(monkeypatch):
    hands = [100.0]
    monkeypatch.setattr("rehearsal_torch.search.budget.perf_counter", lambda: hands[0])
    return hands


def test_time_is_counted_from_the_beginning(clock):
    budget = Budget(2.0)
    assert (budget.spent(), budget.left(), budget.out()) == (0.0, 2.0, False)
    clock[0] = 101.5
    assert (budget.spent(), budget.left(), budget.out()) == (1.5, 0.5, False)
    clock[0] = 102.0
    assert (budget.spent(), budget.left()) == (2.0, 0.0)
    assert not budget.ran_out
    assert budget.out()
    assert budget.ran_out
    clock[0] = 110.0
    assert (budget.spent(), budget.left()) == (10.0, 0.0)


def test_without_a_limit_there_is_always_time(clock):
    budget = Budget()
    clock[0] = 1e9
    assert budget.left() == UNLIMITED.left() == math.inf
    assert not budget.out()
    assert not UNLIMITED.out()
    assert budget.facts() == {}


def test_a_trace_says_what_is_known_of_a_search_that_was_ended(clock):
    budget = Budget(0.5)
    clock[0] = 101.0
    assert budget.facts(1.0) == {}, "nothing was ended"
    assert budget.out()
    assert budget.facts() == {
        "stopped": "stopped after budget_s=0.5; no gap is known",
        "gap": None,
        "limit_s": 0.5,
    }
    assert budget.facts(0.25) == {"stopped": "stopped after budget_s=0.5", "gap": 0.25, "limit_s": 0.5}


def test_a_search_inside_another_names_what_was_asked_for(clock):
    whole = Budget(8.0)
    clock[0] = 106.0
    inner = Budget(whole.remaining())
    assert (inner.left(), inner.reason()) == (2.0, "stopped after budget_s=8")
    assert min(Budget().remaining(), 5.0) == 5.0
