import numpy as np
import pytest
import torch

from rehearsal_torch.data.graph_check import (
    LEVEL,
    SIGNIFICANT,
    contradiction,
    contradictions,
    dependence_given,
    refutations,
    refuted_claims,
    untrue_graph,
)
from rehearsal_torch.data.records import Records
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
    assert untrue_graph(table(0.0).records(), TASK) == []
    assert dependence_given(table(0.0).records(), TASK, "idle") > SIGNIFICANT


def test_an_effect_that_the_graph_rules_out_is_told():
    (said,) = untrue_graph(table(1.0).records(), TASK)
    assert said == contradiction(TASK, "idle", dependence_given(table(1.0).records(), TASK, "idle"))
    assert said.text.startswith("setting idle cannot change y by the graph, but in the observations")


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


def rows_of(**columns):
    return Records(tuple(columns), np.stack(list(columns.values()), -1))


def asking(parents, context=("x",), **more):
    plain = {"graph": {"parents": parents}, "context": list(context), "box": {"a": [-2, 2]}}
    return RehearsalTask.of(plain | {"region": {"y": [0, None]}} | more)


def confounded(seed, count, effect=1.0):
    """x -> {u a y}, u -> {a y} and a -> y; without `effect`, u is alone."""
    stream = np.random.default_rng(seed)
    x, u, e, noise = stream.normal(size=(4, count))
    u = u + 0.3 * x
    a = 0.5 * x + effect * u + 0.5 * e
    return {"x": x, "u": u, "a": a, "y": a + x - 2 * effect * u + noise}


WITHOUT = {"u": ["x"], "a": ["x"], "y": ["x", "a"]}
RIGHT = {"u": ["x"], "a": ["x", "u"], "y": ["x", "a", "u"]}


def test_missing_arrows_are_refuted_with_their_size():
    found = refuted_claims(rows_of(**confounded(0, 500)), asking(WITHOUT))
    assert {frozenset(each.first + each.second) for each in found} == {frozenset("ua"), frozenset("uy")}
    of_action = next(each for each in found if "a" in each.first + each.second)
    # corr(u, a | x) = 1 / sqrt(1.25).
    assert of_action.lower < 0.8**0.5 < of_action.upper
    assert of_action.upper - of_action.lower < 0.06
    assert {each.claims for each in found} == {2}
    (said,) = refutations(asking(WITHOUT), found)
    assert said.kind == "refuted_graph"
    assert said.text.startswith("the rows contradict 2 of the 2 independences that the graph claims by its")
    assert said.numbers["size"] == found[0].size
    assert refuted_claims(rows_of(**confounded(0, 500)), asking(RIGHT)) == ()
    assert refutations(asking(RIGHT), ()) == []


def test_true_graphs_of_linear_worlds_are_rarely_refuted():
    refuted = 0
    for seed in range(100):
        stream = np.random.default_rng([7, seed])
        names, arrows = ["x", "u", "v", "a", "m", "y"], np.triu(stream.random((6, 6)) < 0.4, 1)
        arrows[3, 5] = True
        columns = []
        for place in range(6):
            causes = sum(1.5 * columns[cause] for cause in np.flatnonzero(arrows[:, place]))
            columns.append(causes + stream.normal(size=200))
        parents = {
            name: [names[cause] for cause in np.flatnonzero(arrows[:, place])]
            for place, name in enumerate(names)
        }
        refuted += bool(refuted_claims(rows_of(**dict(zip(names, columns, strict=True))), asking(parents)))
    # 1 % is meant; 5 of 100 have a probability of .3 % then.
    assert refuted < 5


@pytest.mark.parametrize("shape", [np.square, lambda u: 2 * np.tanh(3 * u), lambda u: np.sin(2 * u)])
def test_curved_common_causes_refute_nothing(shape):
    stream = np.random.default_rng(3)
    x, u, e, f = stream.normal(size=(4, 800))
    rows = rows_of(x=x, u=u, a=shape(u) + 0.3 * e, y=shape(u) + 0.3 * f)
    assert refuted_claims(rows, asking({"u": ["x"], "a": ["u"], "y": ["u"], "x": []})) == ()
    task = asking({"u": [], "a": ["u"], "m": ["u"], "y": ["m", "a"], "x": []})
    rows = rows_of(x=x, u=u, a=shape(u) + 0.3 * e, m=shape(u) + 0.3 * f, y=stream.normal(size=800))
    assert refuted_claims(rows, task) == ()


def test_a_trace_of_a_dependence_in_very_many_rows_is_not_told():
    columns = confounded(1, 100_000, effect=0.0)
    columns["u"] = columns["u"] + 0.02 * columns["a"]
    found = refuted_claims(rows_of(**columns), asking(WITHOUT))
    assert found == ()


def test_rows_of_a_unit_count_as_far_as_they_differ():
    stream = np.random.default_rng(0)
    unit = stream.permutation(np.repeat(np.arange(40), 25))
    x, u, a, y = stream.normal(size=(4, 1000))
    # The shifts of 40 units are correlated, as they may be by chance; 1,000 rows never would be.
    shifts = np.linalg.qr(stream.normal(size=(40, 2)))[0].T * 40**0.5
    shifts[1] = 0.35 * shifts[0] + shifts[1]
    columns = {"x": x, "u": u + 3 * shifts[0][unit], "a": a + 3 * shifts[1][unit], "y": y}
    task = asking({"u": ["x"], "a": ["x"], "y": ["a"]})
    assert refuted_claims(rows_of(**columns), task)
    assert refuted_claims(rows_of(**columns), task, [str(each) for each in unit]) == ()


def test_classes_and_yes_or_no_are_tested_as_variables():
    stream = np.random.default_rng(1)
    sick, ward = stream.integers(0, 2, 600).astype(float), stream.integers(0, 3, 600)
    a = sick + (ward == 2) + stream.normal(size=600)
    task = asking(
        {"a": [], "y": ["a"], "sick": [], "ward": []},
        ("ward",),
        codings={"ward": {"classes": ["A", "B", "C"], "reference": "A"}},
    )
    values = {
        "sick": sick,
        "ward=B": ward == 1,
        "ward=C": ward == 2,
        "a": a,
        "y": a + stream.normal(size=600),
    }
    rows = rows_of(**{name: each.astype(float) for name, each in values.items()})
    found = refuted_claims(rows, task)
    ends = {frozenset(task.variables(each.first + each.second)) for each in found}
    assert ends == {frozenset({"a", "sick"}), frozenset({"a", "ward"})}
    assert {each.claims for each in found} == {5}
    assert all(each.p < LEVEL for each in found)


def test_independent_series_are_rarely_refuted_in_whatever_order_their_rows_stand():
    """Rows were once tested in the order of their contents, in which neighbours have nothing in common."""
    refuted, series, true = 0, 40, {"a": [], "w": [], "y": ["x", "a", "w"]}
    for seed in range(series):
        stream = np.random.default_rng([9, seed])
        a, w = np.zeros((2, 250))
        for step in range(1, 250):
            a[step], w[step] = 0.85 * np.array([a[step - 1], w[step - 1]]) + stream.normal(size=2)
        x, e = stream.normal(size=(2, 250))
        recorded = rows_of(x=x, a=a, w=w, y=a + w + x + e)
        places = stream.permutation(250)
        shuffled = Records(recorded.names, recorded.values[places], places)
        assert np.array_equal(shuffled.as_recorded().values, recorded.values)
        assert refuted_claims(shuffled, asking(true)) == refuted_claims(recorded, asking(true))
        refuted += bool(refuted_claims(shuffled, asking(true)))
    assert refuted <= 2
