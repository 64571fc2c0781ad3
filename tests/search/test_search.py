"""From the best actions of each set to decisions."""

import math

import pytest
import torch

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.search import UNLIMITED, BatchSearch, Budget, NoAction, Search, chosen, in_time
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from tests.places import concrete
from tests.search.alterations.test_projected_ascent import WIDE, Function, Functions, bowl, cases

INFINITE = float("inf")


BOTH = (Appraisal(chance(0.5), chance(0.1)), Appraisal(chance(0.6), chance(0.1)))


class Said(Function):
    """Appraised as given."""

    def __init__(self, some_cases, names, appraisals):
        super().__init__(some_cases, names, bowl)
        self.appraisals = appraisals

    def appraise(self, actions):
        return [self.appraisals for _ in actions]


class Untaught(RehearsalSurrogate):
    """A surrogate of which nothing but its task is asked."""

    def parts(self, table):
        return iter(())


def decided(values, appraisals=BOTH, facts=None, **more):
    some_cases = cases(*[0.0] * len(values[0]))
    objective = Functions(
        some_cases, [Said(some_cases, (name,), one) for name, one in zip("ab", appraisals, strict=False)]
    )
    actions = [
        torch.full((len(some_cases), 1), float(index), dtype=torch.float64) for index in range(len(values))
    ]
    return chosen(
        objective, actions, torch.tensor(values, dtype=torch.float64), "test", Budget(), facts, **more
    )


def test_the_largest_value_wins_and_the_first_of_equals():
    decisions = decided([[1.0, 3.0, 2.0], [2.0, 1.0, 2.0]])
    assert [each.alteration.names for each in decisions] == [("b",), ("a",), ("a",)]
    assert [float(each.alteration.values) for each in decisions] == [1, 0, 0]
    assert [each.value for each in decisions] == [2, 3, 2]
    assert [each.estimate.point for each in decisions] == [0.6, 0.5, 0.5]
    assert all(
        each.trace["search"] == "test"
        and each.reason is None
        and each.alteration.values.dtype == torch.float64
        for each in decisions
    )


def test_what_the_objective_accepts_comes_before_larger_values():
    accepted = torch.tensor([[False, False, False], [True, False, True]])
    decisions = decided([[3.0, 3.0, 3.0], [1.0, 1.0, -math.inf]], accepted=accepted)
    assert [each.alteration.names for each in decisions] == [("b",), ("a",), ("a",)]
    assert [each.value for each in decisions] == [1, 3, 3]


def test_a_refusal_says_why_and_what_it_would_have_set():
    (decision,) = decided(
        [[1.0]], [Appraisal(chance(0.5), chance(0.1), refused=Finding("no_support", "too far away"))]
    )
    assert decision.alteration is None
    assert decision.reason.text == "too far away"
    assert decision.trace["would_set"] == {"a": 0.0}
    assert decision.undecided
    assert decision.estimate.point == 0.5


def test_where_no_set_qualifies_nothing_is_altered():
    decisions = decided([[-INFINITE, -INFINITE], [-INFINITE, 1.0]])
    assert decisions[0].alteration is None
    assert decisions[0].reason.text == "no candidate alteration qualifies"
    assert decisions[1].alteration.names == ("b",)


def test_warnings_stand_beside_the_recommendation():
    said = (Finding("support", "few rows"), Finding("graph", "hidden cause"))
    (decision,) = decided([[1.0]], [Appraisal(chance(0.5), chance(0.1), said)])
    assert decision.alteration is not None
    assert decision.warnings == ("few rows", "hidden cause")


@pytest.mark.parametrize("declines", [True, False])
def test_a_set_that_leads_nowhere_is_passed_over_only_by_those_that_may_decline(declines):
    task = RehearsalTask(
        RehearsalGraph.of({"x": (), "a": (), "b": (), "y": ("x", "b")}),
        ("x",),
        Box.of(WIDE),
        Polytope.of({"y": (0.5, None)}),
    )
    some_cases = cases(0.0)
    sets = [Said(some_cases, (name,), each) for name, each in zip("ab", BOTH, strict=True)]
    actions = [torch.ones(1, 1, dtype=torch.float64)] * 2
    values = torch.tensor([[2.0], [1.0]], dtype=torch.float64)
    objective = Functions(some_cases, sets, Untaught(task))
    (decision,) = chosen(objective, actions, values, "test", Budget(), declines=declines)
    assert decision.alteration is not None
    assert (decision.alteration.names, decision.value) == ((("b",), 1.0) if declines else (("a",), 2.0))


def test_a_value_that_is_no_number_never_wins():
    decisions = decided([[math.nan, math.nan], [math.nan, -5.0]])
    assert decisions[0].undecided
    assert decisions[0].reason.text == "no candidate alteration qualifies"
    assert decisions[1].alteration.names == ("b",)


def test_an_action_that_is_no_number_is_refused():
    some_cases = cases(0.0)
    objective = Functions(some_cases, [Said(some_cases, ("a",), BOTH[0])])
    (decision,) = chosen(
        objective,
        [torch.full((1, 1), math.nan, dtype=torch.float64)],
        torch.ones(1, 1, dtype=torch.float64),
        "test",
        Budget(),
    )
    assert decision.undecided
    assert decision.reason.text == "the search found no finite alteration"


def test_one_situation_gives_one_decision_and_several_are_too_many():
    class First(BatchSearch):
        def batch_search(self, objective):
            return decided([[1.0] * len(objective.cases)], [BOTH[0]])

    assert First()(Functions(cases(0.0), [])).alteration.names == ("a",)
    with pytest.raises(ValueError, match="too many values"):
        First()(Functions(cases(0.0, 1.0), []))


def test_every_search_declares_the_kind_of_problem_that_it_is_for():
    kinds = {"alterations": "rehearse", "sequences": "look_back", "trials": "optimise", "search": "rehearse"}
    found = concrete("rehearsal_torch.search", Search)
    assert {AStar, NoAction, ProjectedAscent, AcquisitionSearch} <= found
    assert {one.__name__: one.kind for one in found} == {
        one.__name__: kinds[one.__module__.split(".")[2]] for one in found
    }
    assert (Search.kind, BatchSearch.kind) == (None, None), "a search of one's own need not declare it"


def test_never_acting_is_said_of_each_case():
    objective = Functions(cases(0.0, 0.0, 0.0), [])
    found = NoAction().batch_search(objective)
    assert len(found) == 3
    for each in found:
        assert (each.alteration, each.reason.kind) == (None, "never_acts")
        assert each.trace == {"search": "none", "altered": []}
        assert 0 <= each.seconds < 1


class Spent:
    """A budget that runs out at some question."""

    ran_out = False

    def __init__(self, at):
        self.at, self.asked = at, 0

    def out(self):
        self.asked += 1
        return self.asked >= self.at


@pytest.mark.parametrize(("at", "yielded"), [(1, ["a"]), (2, ["a", "b"]), (9, ["a", "b", "c"])])
def test_the_first_set_is_searched_whatever_the_budget(at, yielded):
    budget = Spent(at)
    assert list(in_time(["a", "b", "c"], budget)) == yielded
    assert budget.asked == min(at, 2)


def test_seconds_are_shared_among_the_cases(monkeypatch):
    monkeypatch.setattr(Budget, "spent", lambda self: 6.0)
    for count in (1, 2, 3):
        assert [each.seconds for each in decided([[1.0] * count])] == [6.0 / count] * count
        idle = NoAction().batch_search(Functions(cases(*[0.0] * count), []))
        assert [each.seconds for each in idle] == [6.0 / count] * count


@pytest.fixture
def clock(monkeypatch):
    hands = [100.0]
    monkeypatch.setattr("rehearsal_torch.search.search.perf_counter", lambda: hands[0])
    return hands


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
