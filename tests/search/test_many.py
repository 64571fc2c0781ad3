"""From the best actions of each set to decisions."""

import time

import pytest
import torch

from rehearsal_torch.objectives.alternatives import AlterationObjective
from rehearsal_torch.search.many import ManySearch, chosen
from tests.search.test_projected_ascent import Function, Functions, bowl, cases

INFINITE = float("inf")


class Said(Function):
    """Evidence as told."""

    def __init__(self, situations, names, said):
        super().__init__(situations, names, bowl)
        self.said = said

    def evidence(self, actions):
        return [dict(self.said) for _ in actions]


def decided(values, said=({"probability": 0.5, "before": 0.1}, {"probability": 0.6, "before": 0.1}), facts=None):
    situations = cases(*[0.0] * len(values[0]))
    objective = Functions(situations, [Said(situations, (name,), one) for name, one in zip("ab", said, strict=False)])
    actions = [torch.full((len(situations), 1), float(index), dtype=torch.float64) for index in range(len(values))]
    return chosen(objective, actions, torch.tensor(values, dtype=torch.float64), "test", time.perf_counter(), facts)


def test_the_largest_value_wins_and_the_first_of_equals():
    decisions = decided([[1.0, 3.0, 2.0], [2.0, 1.0, 2.0]])
    assert [each.alteration.names for each in decisions] == [("b",), ("a",), ("a",)]
    assert [float(each.alteration.values) for each in decisions] == [1, 0, 0]
    assert [each.value for each in decisions] == [2, 3, 2]
    assert [each.evidence["probability"] for each in decisions] == [0.6, 0.5, 0.5]
    assert all(each.evidence["search"] == "test" and each.reason == "" and each.alteration.values.dtype == torch.float64 for each in decisions)


def test_further_facts_are_kept():
    decisions = decided([[1.0, 2.0], [0.0, 0.0]], facts=[{"steps": 3}, {"steps": 4}])
    assert [each.evidence["steps"] for each in decisions] == [3, 4]


def test_a_refusal_says_why_and_what_it_would_have_set():
    (decision,) = decided([[1.0]], [{"probability": 0.5, "before": 0.1, "refused": "too far away"}])
    assert decision.alteration is None
    assert decision.reason == "too far away"
    assert decision.evidence["would_set"] == {"a": 0.0}
    assert "refused" not in decision.evidence


def test_where_no_set_qualifies_nothing_is_altered():
    decisions = decided([[-INFINITE, -INFINITE], [-INFINITE, 1.0]])
    assert decisions[0].alteration is None
    assert decisions[0].reason == "no candidate alteration qualifies"
    assert decisions[1].alteration.names == ("b",)


def test_warnings_are_the_reason_to_read():
    (decision,) = decided([[1.0]], [{"probability": 0.5, "before": 0.1, "warnings": ["few rows", "hidden cause"]}])
    assert decision.alteration is not None
    assert decision.reason == "few rows; hidden cause"


def test_one_situation_gives_one_decision_and_several_are_too_many():
    class First(ManySearch):
        def many(self, objective):
            return decided([[1.0] * len(objective.situations)], [{}])

    assert First()(Functions(cases(0.0), [])).alteration.names == ("a",)
    with pytest.raises(ValueError, match="too many values"):
        First()(Functions(cases(0.0, 1.0), []))


def test_objectives_are_given_back_typed():
    situations = cases(0.0)
    objective = Functions(situations, [Function(situations, ("a",), bowl)])
    assert all(isinstance(one, AlterationObjective) for one in objective.objectives())
