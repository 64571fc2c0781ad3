import pytest
import torch

from rehearsal_torch.data.graph_check import (
    SIGNIFICANT,
    contradiction,
    contradictions,
    dependence_given,
    untrue_graph,
)
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table

# By the graph `idle` cannot change `y`.
TASK = RehearsalTask.of(
    {
        "graph": {"parents": {"act": ["x"], "y": ["x", "act"], "idle": ["x"]}},
        "context": ["x"],
        "box": {"act": [0, 1], "idle": [0, 1]},
        "region": {"y": [0, None]},
    }
)


def table(effect):
    x, act, idle, noise = torch.randn(4, 300, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    act, idle = act + x, idle + x
    values = torch.stack([x, act, idle, x + act + effect * idle + noise], -1)
    return Table.observed(("x", "act", "idle", "y"), values)


def test_a_graph_that_the_table_agrees_with_says_nothing():
    assert untrue_graph(table(0.0), TASK) == []
    assert dependence_given(table(0.0), TASK, "idle") > SIGNIFICANT


def test_an_effect_that_the_graph_rules_out_is_told():
    (said,) = untrue_graph(table(1.0), TASK)
    assert said == contradiction(TASK, "idle", dependence_given(table(1.0), TASK, "idle"))
    assert said.text.startswith("setting idle cannot change y by the graph, but in the observations")


@pytest.mark.parametrize(("p", "shown"), [(1.234e-7, "(p = 1e-07)"), (0.0004, "(p = 0.0004)")])
def test_how_sure_it_is(p, shown):
    assert shown in contradiction(TASK, "idle", p).text


def test_of_the_indicators_of_an_action_the_strongest_speaks_for_all():
    task = RehearsalTask.of(
        {
            "graph": ["x -> {drug y idle}"],
            "context": ["x"],
            "box": {"drug": {"values": ["A", "B", "C"]}, "idle": [0, 1]},
            "region": "y >= 0",
            "codings": {"drug": {"classes": ["A", "B", "C"], "reference": "A"}},
        }
    )
    found = contradictions(task, {"drug=B": 1e-5, "drug=C": 1e-7, "idle": 0.2})
    assert found == [contradiction(task, "drug", 1e-7)]
    assert contradictions(task, {}) == []
    # The level is shared among all that are tested.
    assert contradictions(task, {"drug=B": 0.0004, "drug=C": 0.5, "idle": 0.2}) == []
