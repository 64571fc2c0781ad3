"""Decisions by a graph that the rows contradict: u and v move the action and the outcome, and the graph has
no arrow that says so; and by one of several that fit the rows as well."""

import numpy as np
import pandas as pd
import pytest

import rehearsal_torch as rt

RIGHT = {"u": ["x"], "v": ["x"], "a": ["x", "u", "v"], "y": ["x", "a", "u", "v"]}
WITHOUT = {"u": ["x"], "v": ["x"], "a": ["x"], "y": ["x", "a"]}
CASES = [{"x": float(x)} for x in np.linspace(-1.5, 1.5, 12)]


def table(rows=400, effect=1.0, seed=5):
    """corr(u, a) = .9; with a higher action y rises, and among the rows it falls."""
    stream = np.random.default_rng(seed)
    x, u, v, e, noise = stream.normal(size=(5, rows))
    u, v = u + 0.3 * x, v + 0.3 * x
    a = effect * (u + 0.3 * v) + 0.35 * e
    return pd.DataFrame({"x": x, "u": u, "v": v, "a": a, "y": a - effect * (2 * u + v) + 0.5 * noise})


def asked(frame, parents, **more):
    task = {"graph": {"parents": parents}, "context": ["x"], "box": {"a": [-2, 2]}, "region": "y >= 1"}
    return rt.rehearse(frame, task, CASES, method="care", seed=1, **more)


@pytest.fixture(scope="module")
def wrong():
    return asked(table(), WITHOUT)


def test_every_decision_that_rests_on_a_refuted_claim_is_leave(wrong):
    assert [each.status for each in wrong] == ["leave"] * 12
    assert {each.reason.kind for each in wrong} == {"refuted_graph"}
    # Without u and v, setting a low is a gain; with them it is a loss.
    assert all(each.reason.numbers["gain"] < 0 < each.reason.numbers["lower"] for each in wrong)
    assert "no arrow joins u and a, and their partial correlation given x is 0.9" in wrong[0].reason.text
    (said,) = [each for each in wrong.findings if each.kind == "refuted_graph"]
    assert said.text.startswith("the rows contradict 4 of the 5 independences")
    right = asked(table(), RIGHT)
    assert {each.alteration is None for each in right} == {False}
    assert not [each for each in right.findings if each.kind == "refuted_graph"]


def test_a_model_that_was_saved_withdraws_the_same_decisions(wrong, tmp_path):
    for model in (wrong.model, rt.load(wrong.model.save(tmp_path / "model"))):
        assert list(model.decide(CASES)) == list(wrong)
    again = rt.load(rt.load(tmp_path / "model").save(tmp_path / "again"))
    assert list(again.decide(CASES)) == list(wrong)


def test_a_trace_of_a_dependence_in_very_many_rows_withdraws_nothing():
    frame = table(100_000, effect=0.0)
    # A partial correlation of .01.
    frame["u"] += 0.03 * frame["a"]
    found = asked(frame, WITHOUT)
    assert {each.alteration is None for each in found} == {False}
    assert not [each for one in found for each in one.findings if each.kind == "refuted_graph"]


def test_graphs_that_fit_the_rows_as_well_judge_without_being_asked():
    # Of u and a, either may cause the other: y rises with a given u, and falls where u follows a.
    parents = {"u": ["x"], "a": ["x", "u"], "y": ["x", "a", "u"]}
    frame = table()
    frame["y"] += frame["a"] - 1.5 * frame["u"]
    found = asked(frame, parents)
    assert {(each.trace["graphs"]["graphs"], each.trace["graphs"]["stand"]) for each in found} == {(2, 0.5)}
    assert {each.trace["graphs"]["worst_named"] for each in found} == {"a -> u"}
    assert all(each.findings[-1].kind == "graph" for each in found)
    assert list(found.model.decide(CASES)) == list(found)
    alone = asked(frame, parents, graphs={"parents": parents})
    assert [each.alteration for each in alone] == [each.alteration for each in found]
    assert {each.trace["graphs"]["graphs"] for each in alone} == {1}
