"""Decisions without single edges of the graph, compared with methods fitted under the graph without it."""

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.api.explain_decision import clearly_apart
from rehearsal_torch.spaces.box import Box
from tests.api.test_explain_decision import CASE, ROWS, WORLD, changed, learnt, of_one_set
from tests.toys.linear_truth import chain


def by_edge(explained):
    return {each.text: each for each in explained.edges}


@pytest.fixture(scope="module")
def model():
    return of_one_set()


@pytest.fixture(scope="module")
def found(model):
    return by_edge(model.explain(CASE))


def test_every_edge_into_action_outcome_or_between_them_is_asked(found):
    assert list(found) == ["x -> a", "a -> m", "x -> y", "m -> y"]


def test_without_a_path_nothing_is_gained(found):
    for name in ("a -> m", "m -> y"):
        assert (found[name].verdict, found[name].gain) == ("falls", 0.0)
        assert found[name].because == "no directed path leads from a to y then"


def test_the_gain_is_that_of_a_method_fitted_without_the_edge(model, found):
    without = {"parents": {"a": ["x"], "m": ["a"], "y": ["m"], "x": []}}
    other = learnt(changed(candidates=[["a"]], graph=without))
    action = model.decide(CASE)[0].alteration
    claim = other.what_if(CASE, {"a": float(action.values[0])})
    assert found["x -> y"].gain == pytest.approx(claim.estimate.point - claim.baseline.point, abs=1e-9)
    assert found["x -> y"].verdict == "stands"
    again = other.decide(CASE)[0].alteration
    assert found["x -> y"].instead == {"a": pytest.approx(float(again.values[0]))}


@pytest.mark.slow
def test_a_recommendation_falls_where_the_graph_without_the_edge_turns_its_gain():
    # y rises with u, which moves a, and falls with a: without u -> y, the dependence of y on a looks causal.
    generator = torch.Generator().manual_seed(3)
    x, u, a, y = torch.randn(4, 400, generator=generator, dtype=torch.float64)
    a = 0.3 * a + u
    y = 0.4 * y + 0.3 * x + 2 * u - a
    table = rt.Table.observed(("x", "u", "a", "y"), torch.stack([x, u, a, y], -1))
    task = {
        "graph": {"parents": {"a": ["u"], "y": ["x", "u", "a"]}},
        "context": ["x"],
        "box": {"a": [-1.5, 1.5]},
        "region": {"y": [0.5, None]},
    }
    edges = by_edge(rt.learn(table, task, method="care").explain({"x": 0.0}))
    assert edges["u -> y"].verdict == "falls"
    assert edges["u -> y"].gain < -0.1
    assert edges["u -> y"].instead["a"] > 1
    assert edges["u -> a"].verdict == edges["x -> y"].verdict == "stands"


def test_the_number_of_fits_has_a_limit_and_the_rest_is_said(model):
    none, one = (by_edge(model.explain(CASE, refits=count)) for count in (0, 1))
    assert [each.verdict for each in none.values()] == ["unknown", "falls", "unknown", "falls"]
    assert [each.verdict for each in one.values()] == ["stands", "falls", "unknown", "falls"]
    said = model.explain(CASE, refits=1).sentences()
    assert (
        "Not checked without x -> y: more than 1 fits are needed, the limit of this explanation (refits=...)."
        in said
    )


def test_an_edge_into_variables_that_move_together_goes_as_a_whole():
    world = chain()
    values = torch.cat([ROWS.values, ROWS.columns(["y"]) + 0.1 * ROWS.columns(["x"]).flip(0)], -1)
    table = rt.Table.observed((*world.names, "z"), values)
    graph = {
        "parents": {"a": ["x"], "m": ["a"], "y": ["m", "x"], "z": ["m", "x"]},
        "bidirected": [["y", "z"]],
    }
    task = WORLD.task.to_plain() | {
        "graph": graph,
        "region": {"y": [1.0, 2.0], "z": [1.0, 2.0]},
        "candidates": [["a"]],
    }
    found = by_edge(rt.learn(table, task, method="care").explain(CASE, refits=1))
    assert list(found) == ["x -> a", "a -> m", "x -> y, z", "m -> y, z"]
    assert (found["m -> y, z"].verdict, found["m -> y, z"].gain) == ("falls", 0.0)


def test_actions_differ_clearly_by_a_tenth_of_a_range_or_a_level():
    box = Box.of({"a": (0.0, 2.0), "b": {"values": [0.0, 1.0, 5.0]}, "c": (3.0, 3.0)})
    at = torch.tensor([1.0, 1.0, 3.0], dtype=torch.float64)
    points = at + torch.tensor(
        [[0.19, 0, 0], [0.2, 0, 0], [-0.2, 0, 0], [0, 1, 0], [0, 1e-9, 0], [0, 0, 0.5]], dtype=torch.float64
    )
    assert clearly_apart(box, points, at).tolist() == [False, True, True, True, False, False]
