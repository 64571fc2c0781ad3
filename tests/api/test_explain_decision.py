"""Why a method decides as it does, compared with what can be counted and fitted by hand."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.objectives.gaussian_success import JOINT
from tests.api.test_rehearse import SMALL
from tests.toys.linear_truth import chain, managing

WORLD = chain()
ROWS = WORLD.table(150)
CASE = {"x": 0.3}


def learnt(task=WORLD.task, method="care", **settings):
    return rt.learn(ROWS.to_frame(), task, method=method, **settings)


def changed(**parts):
    return WORLD.task.to_plain() | parts


@cache
def of_one_set():
    """With a as the only candidate; not to be changed."""
    return learnt(changed(candidates=[["a"]]))


@pytest.fixture(scope="module")
def model():
    return learnt()


@pytest.fixture(scope="module")
def explained(model):
    return model.explain(CASE, rows=True)


def test_it_explains_the_decision_that_the_method_makes(model, explained):
    (decision,) = model.decide(CASE)
    assert explained.decision.to_dict() == decision.to_dict()
    assert explained.considered == {"a": float(decision.alteration.values[0])}
    assert [each.names for each in explained.adjusted] == [("a",), ("m",), ("a", "m")]
    assert [each.before for each in explained.adjusted] == [(), ("a",), ()]


def test_near_rows_are_those_that_a_count_by_hand_finds(explained):
    both = ROWS.columns(["x", "a"]).numpy()
    shown = (both - both.mean(0)) / both.std(0)
    apart = np.linalg.norm(shown[:, None] - shown[None], axis=-1)
    radius = np.quantile(np.sort(apart, 1)[:, 5], 0.975)
    at = (np.array([0.3, explained.considered["a"]]) - both.mean(0)) / both.std(0)
    distance = np.linalg.norm(shown - at, axis=-1)
    near = distance <= radius
    assert explained.rows.count == near.sum() > 10
    assert explained.rows.radius == pytest.approx(radius)
    assert explained.rows.compared == 150
    assert explained.rows.region["a"] == (both[near, 1].min(), both[near, 1].max())
    outcomes = ROWS.columns(["y"])[torch.from_numpy(near)]
    assert explained.rows.desired == int(WORLD.task.region.contains(outcomes).sum())
    contents = explained.rows.contents
    assert list(contents.columns) == ["x", "a", "m", "y", "distance"]
    assert contents["distance"].to_numpy() == pytest.approx(np.sort(distance[near]))
    assert contents["distance"].is_monotonic_increasing


def test_contents_of_rows_are_shown_only_if_asked_for(model, explained):
    plain = model.explain(CASE, refits=0)
    assert plain.rows.contents is None
    assert plain.rows == explained.rows


def test_the_runner_up_of_the_set_is_the_best_action_that_differs_by_a_tenth(model, explained):
    first, other = explained.considered["a"], explained.runners_up[1]
    assert other.of == "action"
    claims = {
        value: model.what_if(CASE, {"a": value}).estimate.point
        for value in np.linspace(-1, 1, 41)
        if abs(value - first) >= 0.2
    }
    best = max(claims, key=claims.get)
    assert other.alteration["a"] == pytest.approx(best, abs=0.05)
    assert other.difference == model.compare(CASE, explained.considered, other.alteration).difference
    assert other.difference.lower > 0


@pytest.mark.slow
def test_the_runner_up_of_the_others_is_what_is_decided_without_the_first_set(model, explained):
    others = learnt(changed(candidates=[["m"], ["a", "m"]]))
    (decision,) = others.decide(CASE)
    found = explained.runners_up[0]
    assert (found.of, tuple(found.alteration)) == ("set", decision.alteration.names)
    assert list(found.alteration.values()) == pytest.approx(decision.alteration.values.tolist(), abs=1e-6)
    assert found.estimate.point == pytest.approx(decision.estimate.point, abs=1e-6)
    apart = explained.decision.estimate.point - decision.estimate.point
    assert found.difference.point == pytest.approx(apart, abs=2e-6)
    compared = model.compare(CASE, explained.considered, found.alteration)
    assert found.difference == compared.difference
    assert (found.basis, compared.basis) == (JOINT, JOINT)
    assert f"({JOINT})" in found.sentence()


@pytest.mark.parametrize(
    ("levels", "best", "others"), [([0.0, 0.5, 0.55], 0.55, [{"a": 0.5}]), ([0.5], 0.5, [])]
)
def test_a_variable_with_levels_has_another_level_as_runner_up(levels, best, others):
    frame = ROWS.to_frame()
    frame["a"] = frame["a"].mul(2).round().div(2)
    frame.loc[:5, "a"] = 0.55
    task = changed(box={"a": {"values": levels}, "m": [-1, 1]}, candidates=[["a"]])
    found = rt.learn(frame, task, method="care").explain(CASE, refits=0)
    assert found.considered == {"a": best}
    assert [each.alteration for each in found.runners_up] == others


def test_what_was_found_and_not_recommended_is_explained():
    model = learnt(changed(box={"a": [-1.0, -0.8], "m": [-1, 1]}, candidates=[["a"]]))
    found = model.explain(CASE)
    assert found.decision.reason.kind == "no_gain"
    assert -1 <= found.considered["a"] <= -0.8
    assert found.rows.count < 30
    verdicts = {each.text: each.verdict for each in found.edges}
    # Without a path there is no gain, so that no action stands.
    assert verdicts == {"x -> a": "stands", "a -> m": "stands", "m -> y": "stands", "x -> y": "stands"}
    assert found.sentences()[0].startswith("No action: no alteration helps: ")


def test_a_refusal_has_no_edges_to_stand_without():
    graph = {"parents": {"a": ["x"], "m": [], "y": ["m", "x"]}}
    found = learnt(changed(graph=graph, candidates=[["a"]])).explain(CASE)
    assert (found.decision.reason.kind, found.edges) == ("no_path", ())
    assert found.notes == ("Single edges were not taken out: nothing is recommended that could stand.",)
    assert found.sentences()[0].startswith("Refused: the graph has no directed path from a to y")


def test_a_method_that_never_acts_has_adjustments_alone():
    found = learnt(method="none").explain(CASE)
    assert (found.considered, found.rows, found.runners_up, found.edges) == ({}, None, (), ())
    assert len(found.sentences()) == 1 + 3


@pytest.mark.slow
def test_a_method_that_draws_covariates_says_for_whom_no_row_is_near():
    model = learnt(changed(candidates=[["a"]]), "outcome_regression", **SMALL)
    found = model.explain(CASE)
    assert found.rows.beyond == model.decide(CASE)[0].trace["beyond"]
    assert "with the covariates of such cases, no row is near for " in found.rows.sentences()[0]
    # The adjustment of the action, the context alone, stays the same without any one of these edges.
    because = {each.text: each.because for each in found.edges}
    assert because.pop("m -> y").startswith("no directed path")
    assert because.pop("a -> m").startswith("no directed path")
    assert set(because.values()) == {"the fit does not change"}


def test_the_callers_random_state_is_left_alone(model):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    model.explain(CASE, refits=1)
    assert torch.equal(torch.rand(1), expected)


def test_where_costs_count_the_second_best_is_so_by_its_net_value():
    costs = {"a": {"up": 1, "down": 1, "usual": 0}, "m": {"up": 40, "down": 40, "usual": 0}}
    model = learnt(RehearsalTask.of(changed(costs=costs, worth=10)))
    explained = model.explain(CASE | {"a": 0.0, "m": 0.0}, refits=0)
    # A change of m by more than a quarter costs more than a desired outcome is worth.
    assert explained.considered["a"] != 0.0
    assert explained.runners_up
    assert all(abs(each.alteration.get("m", 0.0)) < 0.25 for each in explained.runners_up)


def test_what_is_held_is_held_in_what_comes_next():
    world = managing(candidates=(("raw_cost",), ("self_pricing",)))
    rows = pd.DataFrame(world.draw(300), columns=list(world.names))
    model = rt.learn(rows, world.task.to_plain(), method="care")
    assert model.task.holding == (("raw_cost", "self_pricing"),)
    new = pd.DataFrame({"cf": [0.1], "ei": [0.2], "raw_cost": [2.0], "self_pricing": [-3.0]})
    (decision,) = model.decide(new)
    (same,) = rt.rehearse(rows, world.task.to_plain(), new, method="care")
    assert same.alteration.names == decision.alteration.names
    assert same.estimate == decision.estimate
    explained = model.explain(new, refits=0)
    assert explained.runners_up
    for rival in explained.runners_up:
        held = {"raw_cost": 2.0}.items() <= rival.alteration.items()
        assert held or set(rival.alteration) == {"raw_cost"}
