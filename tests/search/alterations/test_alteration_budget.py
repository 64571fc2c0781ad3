import pytest
import torch

from rehearsal_torch.search.alterations.joint_candidates import AlterationBudget


def test_costs_are_prices_times_distances():
    budget = AlterationBudget.of({"limit": 3.0, "costs": {"a": 2.0}, "reference": {"b": 1.0}})
    actions = torch.tensor([[1.0, 2.0], [1.0, 2.1], [-1.0, 0.0]], dtype=torch.float64)
    assert budget.cost(("a", "b"), actions).tolist() == pytest.approx([3.0, 3.1, 3.0])
    assert budget.affordable(("a", "b"), actions).tolist() == [True, False, True]


def test_one_variable_alone_has_an_interval():
    budget = AlterationBudget(3.0, {"a": 2.0, "free": 0.0}, {"a": 1.0})
    assert budget.reach("a") == (-0.5, 2.5)
    assert budget.reach("free") == (-float("inf"), float("inf"))
    assert budget.reach("other") == (-3.0, 3.0)


@pytest.mark.parametrize(
    "plain",
    [{"limit": -1.0}, {"limit": 1.0, "costs": {"a": -2.0}}, {"costs": {}}, {"limit": 1.0, "price": {}}],
)
def test_budgets_without_sense_are_refused(plain):
    with pytest.raises(ValueError, match="limit"):
        AlterationBudget.of(plain)


@pytest.mark.parametrize("origin", [0.0, 1e9, -1e9])
def test_what_costs_the_limit_is_affordable_wherever_nothing_is_spent(origin):
    budget = AlterationBudget.of({"limit": 0.3, "costs": {"a": 2.0}, "reference": {"a": origin}})
    ends = torch.tensor([[origin - 0.15], [origin + 0.15], [origin]], dtype=torch.float64)
    assert budget.affordable(("a",), ends).tolist() == [True] * 3
    assert budget.affordable(("a",), ends[:2] + torch.tensor([[-0.01], [0.01]])).tolist() == [False] * 2
    assert budget.reach("a") == (origin - 0.15, origin + 0.15)


def test_nothing_may_be_spent_and_everything_be_free():
    budget = AlterationBudget(0.0, {"free": 0.0}, {"a": 2.0})
    actions = torch.tensor([[2.0, 1e9], [2.0 + 1e-12, 0.0]], dtype=torch.float64)
    assert budget.affordable(("a", "free"), actions).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"negative costs for \['b'\]"):
        AlterationBudget(1.0, {"a": 1.0, "b": -1.0})
