"""Under which graphs a decision stands: u before the action or after it, in a world where that decides."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from rehearsal_torch.claims.graph_robustness import (
    FITS,
    TRACE,
    drawn,
    equally_good,
    member_graphs,
    with_arrows,
)
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.estimate import Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.graph_check import Refuted
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.graph_notation import graph_class
from rehearsal_torch.objectives.gain import SupportedGain
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.rehearsal_toys import confounded_table, some_cases

PARENTS = {"c": ["x"], "y": ["x", "a", "u"]}
CLASS = graph_class({"parents": PARENTS, "undirected": [["u", "a"]]})
TASK = RehearsalTask.of(
    {
        "graph": {"parents": PARENTS | {"a": ["u"]}},
        "context": ["x"],
        "box": {"a": [-1.5, 1.5]},
        "region": {"y": [2.0, None]},
    }
)
TABLE = confounded_table(300)
CASES = some_cases(TASK, 3)
outcome_regression = partial(OutcomeRegression, members=2, blocks=4, frequencies=30, evidence_rows=80)


def judge(make=LinearStructural, objective=GaussianSuccess, graphs=CLASS, **more):
    seen = []

    def fitted(graph):
        seen.append(graph)
        return fit(make(replace(TASK, graph=graph)), TABLE)

    return member_graphs(graphs, fit(make(TASK), TABLE), fitted, objective, **more), seen


def setting(value, names=("a",)):
    decision = Decision(Alteration(names, torch.full((len(names),), value, dtype=torch.float64)), 0.5)
    return [decision, Decision(None, 0.0), decision]


@pytest.mark.parametrize(
    ("make", "objective"), [(LinearStructural, GaussianSuccess), (outcome_regression, SupportedGain)]
)
def test_an_action_may_be_right_under_one_graph_and_wrong_under_the_other(make, objective):
    lines: list[str] = []
    found, seen = judge(make, objective, told=lines.append)
    # The task's own graph is fitted already.
    assert [graph.edges.count(("a", "u")) for graph in seen] == [1]
    assert lines == ["graphs: fit 1 of 1, for 1 of 2"]
    # Setting a high helps if u causes it, and harms if a causes u, of which y falls faster than it rises.
    first, none, third = found(CASES, setting(1.5))
    assert none.trace == {}
    facts = first.trace[TRACE]
    assert (facts["stand"], facts["worst_named"], facts["worst_weight"]) == (0.5, "a -> u", 0.5)
    assert facts["worst"] < 0
    assert (facts["judged"], facts["graphs"], facts["fits"], facts["left_out"]) == (1.0, 2, 2, 0)
    assert first.warnings[-1].startswith("under 50.0% of the 2 graphs that may be true no better")
    assert third.alteration == first.alteration
    low = found(CASES, setting(-1.5))[0].trace[TRACE]
    assert (low["stand"], low["worst_named"]) == (0.5, "u -> a")


def test_where_present_values_are_known_a_decision_stands_if_it_is_better_than_these():
    found, _ = judge()
    high = [replace(each, present={"a": 1.5}) for each in CASES]
    assert found(high, setting(1.5))[0].trace[TRACE]["worst"] == 0.0
    low = [replace(each, present={"a": -1.5}) for each in CASES]
    up, down = found(low, setting(1.5))[0].trace[TRACE], found(high, setting(-1.5))[0].trace[TRACE]
    assert (up["worst_named"], down["worst_named"]) == ("a -> u", "u -> a")
    assert up["worst"] < found(CASES, setting(1.5))[0].trace[TRACE]["worst"]


def test_graphs_with_the_same_adjustment_share_a_fit():
    graphs = [
        {"parents": PARENTS | {"a": ["u"]}},
        {"parents": PARENTS | {"a": ["u"], "c": ["x", "u"]}},
        {"parents": PARENTS | {"a": ["u", "c"]}},
        {"parents": PARENTS | {"u": ["a"]}},
    ]
    found, seen = judge(outcome_regression, SupportedGain, graph_class(graphs))
    assert len(seen) == 2
    assert len(found.surrogates) == 3
    assert found.of[0] == found.of[1] != found.of[2]
    every, fitted = judge(graphs=graph_class(graphs))
    assert (len(every.surrogates), len(fitted)) == (4, 3)


def test_without_a_path_there_is_no_gain_and_graphs_against_the_roles_are_left_out():
    cut = {"parents": {"a": ["u"], "c": ["x"], "y": ["x", "u"]}}
    late = {"parents": PARENTS | {"x": ["a"], "c": []}}
    graphs = graph_class([{"parents": PARENTS | {"a": ["u"]}}, cut, late])
    found, _ = judge(graphs=graphs)
    facts = found(CASES, setting(1.5))[0].trace[TRACE]
    assert (facts["stand"], facts["worst"], facts["left_out"], facts["graphs"]) == (0.5, 0.0, 1, 2)
    with pytest.raises(
        ValueError, match=r"each of 1 graphs contradicts the roles of the task: context \['x'\]"
    ):
        judge(graphs=graph_class([late]))
    with pytest.raises(ValueError, match=r"\['z'\] are not both"):
        judge(graphs=graph_class([{"parents": PARENTS | {"a": ["u", "z"]}}]))


def test_claims_come_first_and_what_stands_everywhere_has_no_warning():
    def claims(cases, decisions):
        return [replace(each, reason=Finding("note", "claimed")) for each in decisions]

    found, seen = judge(graphs=graph_class({"parents": PARENTS | {"a": ["u"]}}), claims=claims)
    (first, *_) = found(CASES, setting(1.5))
    assert (first.reason.text, first.warnings, seen) == ("claimed", (), [])
    assert first.trace[TRACE]["stand"] == 1.0


def test_the_number_of_fits_is_bounded():
    bits = range(6)
    graphs = graph_class(
        [
            {"parents": PARENTS | {"a": ["u"]} | {f"v{bit}": ["x"] * (number >> bit & 1) for bit in bits}}
            for number in range(FITS + 2)
        ]
    )
    task = RehearsalTask.of(TASK.to_plain() | {"graph": graphs.graphs[0].to_plain()})
    own = LinearStructural(task)
    with pytest.raises(ValueError, match=f"52 graphs need 51 fits; expected at most {FITS}"):
        member_graphs(graphs, own, lambda graph: own, GaussianSuccess)


def refuted(*pairs):
    return [Refuted((one,), (other,), (), 0.9, 0.8, 0.95, 0.0, 5) for one, other in pairs]


def asking(parents, **more):
    plain = {"graph": {"parents": parents}, "context": ["x"], "box": {"a": [-1.5, 1.5]}}
    return RehearsalTask.of(plain | {"region": {"y": [2.0, None]}} | more)


ALONE = asking({"u": ["x"], "c": ["x"], "a": ["x"], "y": ["x", "a"]})


def test_refuted_arrows_are_drawn_in_both_orders_that_the_roles_leave_open():
    first, second = with_arrows(ALONE, refuted("ua", "uy", "uc"))
    assert {("u", "a"), ("u", "y")} < set(first.edges)
    assert {("a", "u"), ("u", "y")} < set(second.edges)
    assert set(ALONE.graph.edges) < set(first.edges) & set(second.edges)
    # Outcomes come last, and the context first.
    assert [set(each.edges) - set(ALONE.graph.edges) for each in with_arrows(ALONE, refuted("cy"))] == [
        {("c", "y")}
    ]
    # What influences an action stays before it.
    (only,) = with_arrows(asking({"w": [], "a": ["w", "x"], "u": [], "y": ["a"]}), refuted("wy", "aw"))
    assert ("w", "y") in only.edges
    joined = asking(
        {"a": ["x"], "y": ["a"], "u": [], "w": []},
        graph={"parents": {"a": ["x"], "y": ["a"]}, "bidirected": [["u", "w"]]},
    )
    assert {("a", "u"), ("a", "w")} < set(with_arrows(joined, refuted("ua"))[1].edges)


def test_a_decision_falls_where_its_gain_leaves_its_interval_with_the_arrows_drawn():
    own, seen = fit(LinearStructural(ALONE), TABLE), []

    def fitted(graph):
        seen.append(graph)
        return fit(LinearStructural(replace(ALONE, graph=graph)), TABLE)

    def judged(decision, declines=True, missing=("ua", "uy")):
        claims = drawn(own, refuted(*missing), fitted, GaussianSuccess, declines)
        return claims(CASES, [decision, Decision(None, 0.0), decision])

    decision = replace(
        setting(1.5)[0],
        estimate=Estimate(0.5, "probability", 0.4, 0.6, 0.95),
        baseline=Estimate(0.7, "probability"),
    )
    first, none, _ = judged(decision)
    # With u after a, nothing else is adjusted for: that is no other fit.
    assert [("u", "a") in graph.edges for graph in seen] == [True]
    # Setting a high helps, as rows with a high a have a high u: the interval of the decision is below zero.
    assert (first.status, first.reason.kind, none.reason) == ("leave", "refuted_graph", None)
    assert first.reason.text.startswith(
        "the answer rests on what the rows contradict: no arrow joins u and a"
    )
    assert first.reason.numbers["lower"] == pytest.approx(-0.3)
    kept = judged(decision, declines=False)[0]
    assert (kept.alteration is not None, kept.findings[-1]) == (True, first.reason)
    wide = replace(decision, gain=Estimate(0.0, "probability", -1.0, 1.0, 0.95))
    assert [each.kind for each in judged(wide)[0].findings] == ["refuted_graph"]
    # An arrow that changes nothing that is adjusted for is not drawn.
    assert drawn(own, refuted("ux"), fitted, GaussianSuccess, True) is None
    assert drawn(own, [], fitted, GaussianSuccess, True) is None


def test_graphs_that_fit_as_well_are_those_of_the_class_that_the_roles_permit():
    task = asking({"u": ["x"], "a": ["x", "u"], "y": ["x", "a", "u"]})
    found = equally_good(LinearStructural(task))
    assert [("u", "a") in each.edges for each in found.graphs] == [True, False]
    assert found.weights == (0.5, 0.5)
    # One fit for all, hidden common causes, and too many orders.
    assert equally_good(outcome_regression(asking({"a": ["x"], "y": ["x", "a"]}))) is None
    hidden = {"parents": {"a": ["x", "u"], "y": ["a", "u"]}, "bidirected": [["x", "u"]]}
    assert equally_good(LinearStructural(asking({}, graph=hidden))) is None
    many = asking({"u": ["x"], "v": ["u"], "w": ["u", "v"], "a": ["u", "v", "w"], "y": ["a", "u", "v", "w"]})
    assert equally_good(LinearStructural(many)) is None
