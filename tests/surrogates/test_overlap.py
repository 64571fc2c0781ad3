"""Where the observations lie: ranges, distances to the 5th nearest row, contradictions of the graph."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from rehearsal_torch.data.graph_check import untrue_graph
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.surrogates.rehearsal_surrogate import ROUNDING, Overlap
from tests.toys.linear_truth import chain

WORLD = chain()


def seen(table, task=WORLD.task, **settings):
    made = Overlap(task, (task.graph,), **settings)
    made.solve(*made.examples(table))
    return made


def test_distances_are_those_of_scikit_learn():
    table = WORLD.table(200)
    made = seen(table)
    values = table.columns(("x", "a", "m")).numpy()
    shown = (values - values.mean(0)) / values.std(0)
    for names, columns in ((("a",), [0, 1]), (("m",), [0, 2]), (("a", "m"), [0, 1, 2])):
        nearest = NearestNeighbors(n_neighbors=6).fit(shown[:, columns])
        own = nearest.kneighbors(shown[:, columns])[0][:, 5]
        assert made.limit(names) == pytest.approx(float(np.quantile(own, 0.975)), rel=1e-6)
        points = torch.tensor([[0.3, *[0.2] * len(names)], [9.0, *[-4.0] * len(names)]], dtype=torch.float64)
        expected = nearest.kneighbors((points.numpy() - values.mean(0)[columns]) / values.std(0)[columns], 5)[
            0
        ][:, 4]
        assert made.distance(names, points[:, :1], points[:, 1:]).tolist() == pytest.approx(
            expected.tolist(), rel=1e-6
        )


def test_rows_of_the_same_law_are_rarely_far_and_others_are():
    made, fresh = seen(WORLD.table(400)), WORLD.table(2000, seed=9)
    far = made.distance(("a",), fresh.columns(("x",)), fresh.columns(("a",))) > made.limit(("a",))
    assert 0.01 <= float(far.double().mean()) <= 0.05
    assert bool(
        (made.distance(("a",), torch.zeros(1, 1), torch.full((1, 1), 6.0)) > made.limit(("a",))).all()
    )


def test_values_beyond_all_rows_are_named():
    made = seen(WORLD.table(100))
    low, high = (float(end) for end in (made.lowest[1], made.highest[1]))
    assert made.outside(("a",), [low]) == made.outside(("a",), [high]) == []
    (said,) = made.outside(("x", "a"), [0.0, high + 0.5])
    assert said.text.startswith(
        f"a is set to {high + 0.5:.6g}; the observations lie between {low:.6g} and {high:.6g}"
    )


def test_a_value_beyond_all_rows_is_said_in_digits_that_show_it():
    made = seen(WORLD.table(100))
    low, high = (float(end) for end in (made.lowest[1], made.highest[1]))
    for value in (high + 1e-7, low - 1e-7):
        (said,) = made.outside(("a",), [value])
        stated, ends = said.text.removeprefix("a is set to ").split("; the observations lie between ")
        assert stated not in ends.split(" and ")


def test_a_graph_that_the_table_contradicts_is_reported_and_a_true_one_is_not():
    wrong = type(WORLD.task)(
        RehearsalGraph.of({"a": ["x"], "m": ["a"], "y": ["x"]}), ("x",), WORLD.task.box, WORLD.task.region
    )
    said = untrue_graph(WORLD.table(200), wrong)
    assert [each.text.split(" cannot")[0] for each in said] == ["setting a", "setting m"]
    assert seen(WORLD.table(200), wrong).contradictions() == said
    assert untrue_graph(WORLD.table(200), WORLD.task) == []


def test_leverages_are_those_of_a_linear_regression():
    table = WORLD.table(150)
    made = seen(table)
    values = table.columns(("x", "a", "m")).numpy()
    for names, columns in ((("a",), [0, 1]), (("a", "m"), [0, 1, 2])):
        design = np.column_stack([np.ones(150), values[:, columns]])
        hat = (design @ np.linalg.inv(design.T @ design) * design).sum(1)
        found = made.leverage(
            names, torch.from_numpy(values[:, :1]), torch.from_numpy(values[:, columns[1:]])
        )
        assert found.tolist() == pytest.approx(hat.tolist(), rel=1e-6)


def test_distances_of_single_rows_are_those_whose_fifth_is_the_distance():
    table = WORLD.table(60)
    made = seen(table)
    point = torch.tensor([0.4, 0.9], dtype=torch.float64)
    found = made.distances(("a",), point)
    assert found.shape == (60,)
    assert float(found.sort().values[4]) == pytest.approx(
        float(made.distance(("a",), point[None, :1], point[None, 1:]))
    )
    assert made.stored().numpy() == pytest.approx(table.columns(("x", "a", "m")).numpy())
    some = table.columns(("x", "a", "m"))[7:9]
    assert torch.allclose(made.distances(("a",), point, some), found[7:9])


def test_rows_that_repeat_few_values_are_no_distance_apart_up_to_rounding():
    values = torch.tensor(np.random.default_rng(0).integers(0, 2, (800, 4)), dtype=torch.float64)
    table = Table.observed(WORLD.task.graph.names, values * 1.7 + 0.3)
    made = seen(table)
    own = made.distance(("a", "m"), table.columns(("x",)), table.columns(("a", "m")))
    assert float(own.max()) <= ROUNDING
    assert made.limit(("a", "m")) <= ROUNDING
    half = table.columns(("x",))[:1] * 0 + 1.15
    assert float(made.distance(("a", "m"), half, table.columns(("a", "m"))[:1])) > 0.9
