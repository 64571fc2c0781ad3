import pytest
import torch

from rehearsal_torch.api.rehearsal_request import NewCases, plain_contexts
from rehearsal_torch.data.cost_table import cost_of_setting
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from tests.api.test_rehearse import TASK


def test_cases_have_the_context_and_what_may_be_set():
    given = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64)
    problem = NewCases(RehearsalTask.of(TASK), given, ["a", "b"], [{"A2": 0.5}, {}])
    assert (problem.kind, problem.count(), problem.card()) == ("rehearse", 2, {"cases": 2})
    case = problem.case(1)
    assert case.facts() == {"identity": "b", "given": {"X1": 0.3, "X2": 0.4}}
    assert case.feasible == {"A2": (0.0, 1.0)}
    assert (problem.case(0).present, case.present) == ({"A2": 0.5}, {})
    narrow = NewCases(problem.task, given, ["a", "b"], [{}, {}], {"A2": (0.2, 0.3)}).case(0)
    assert narrow.feasible == {"A2": (0.2, 0.3)}
    assert problem.score(case, None) == {}
    with pytest.raises(IndexError, match=r"expected a case in 0 ... 1; got 2"):
        problem.case(2)


def test_there_are_no_rows():
    problem = NewCases(RehearsalTask.of(TASK), torch.zeros(1, 2, dtype=torch.float64), ["a"], [{}])
    assert len(problem.observations()) == len(problem.held_out()) == 0
    assert problem.observations().names == problem.task.graph.names


def test_cases_have_the_costs_of_the_task_and_those_of_their_own():
    task = RehearsalTask.of(TASK | {"costs": {"A2": {"column": "price", "usual": 0.5}}, "worth": 10})
    given = torch.zeros(2, 2, dtype=torch.float64)
    problem = NewCases(task, given, ["a", "b"], [{"A2": 0.25}, {}], unit_costs=[{"A2": 4.0}, {"A2": 0.0}])
    first = problem.case(0)
    assert cost_of_setting(first.costs, ["A2"], [0.5]) == 1.0
    assert first.costs.worth == 10.0
    assert first.facts()["costs"] == {"A2": 4.0}
    assert problem.case(1).costs is None


def test_cases_in_one_batch_are_those_one_by_one():
    given = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=torch.float64)
    problem = NewCases(RehearsalTask.of(TASK), given, ["a", "b", "c"], [{"A2": 0.5}, {}, {}])
    for together, alone in zip(problem.cases([2, 0]), [problem.case(2), problem.case(0)], strict=True):
        assert together.facts() == alone.facts()
        assert vars(together).keys() == vars(alone).keys()
    assert problem.cases([]) == []


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"X2": 2, "X1": 1.0}, [[1.0, 2.0]]),
        ([{"X1": 1.0, "X2": 2.0}, {"X1": 3.0, "X2": 4.0}], [[1.0, 2.0], [3.0, 4.0]]),
        ([], None),
        ({"X1": 1.0}, None),
        ({"X1": 1.0, "X2": 2.0, "A2": 0.5}, None),
        ({"X1": True, "X2": 2.0}, None),
        ({"X1": "1", "X2": 2.0}, None),
        ({"X1": float("nan"), "X2": 2.0}, None),
        ({"X1": 1e200, "X2": 2.0}, None),
    ],
)
def test_dictionaries_of_contexts_alone_need_no_table(given, plain):
    found = plain_contexts(given, RehearsalTask.of(TASK))
    assert (found if found is None else found.tolist()) == plain
    priced = RehearsalTask.of(TASK | {"costs": {"A2": {"column": "price", "usual": 0.5}}, "worth": 10})
    assert plain_contexts(given, priced) is None
