"""Alterations of cases, from Python: the default method, and what a task can say."""

import pytest

import rehearsal_torch as rt
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.linear_examples import LinSyn1
from rehearsal_torch.problems.cases.nonlinear_examples import Classes, Loan, NonSyn1, NonSyn2, Visits, YesNo
from tests.golden import inputs
from tests.golden.recorded import of_decisions, of_line
from tests.toys import priced

pytestmark = pytest.mark.slow
QUICK = {"choose.repeats": 2, "choose.cases": 5}


def test_rehearse(golden):
    golden(of_decisions(rt.rehearse(inputs.rates(), inputs.RATES, inputs.RATE_CASES)))


def test_learn_and_decide(golden):
    model = rt.learn(inputs.rates(), inputs.RATES)
    asked = model.what_if(inputs.RATE_CASES[0], {"z": 0.7}).estimate
    golden(
        of_decisions(model.decide(inputs.RATE_CASES))
        | {"what_if": {name: getattr(asked, name) for name in ("point", "lower", "upper")}}
    )


@pytest.mark.parametrize(
    "kind", [Loan, LinSyn1, NonSyn1, NonSyn2, YesNo, Visits, Classes], ids=lambda kind: kind.__name__
)
def test_world(golden, kind):
    golden(of_decisions(rt.rehearse(*inputs.world(kind, 300, 4))))


def test_rare_success(golden):
    golden(of_decisions(rt.rehearse(*inputs.world(Bermuda, 1000, 4, preset="neurips24"))))


def test_overlap_harm(golden):
    task = {
        "graph": ["x -> {u a y}", "u -> {a y}", "a -> y"],
        "context": ["x"],
        "box": {"a": [-3, 3]},
        "region": "y >= -0.5",
    }
    cases = [{"x": -1.5 + 0.375 * place} for place in range(9)]
    golden(of_decisions(rt.rehearse(inputs.overlapping(), task, cases, seed=1)))


METHODS = [
    "none",
    "cme",
    "cme_published",
    "cme_nystrom",
    "cme_fourier",
    "outcome_regression",
    "care",
    "micns",
]


@pytest.mark.parametrize("method", [*METHODS, "qwz23_offline"])
def test_method(golden, method):
    golden(of_decisions(rt.rehearse(*inputs.world(Loan, 200, 3), method=method)))


def test_auto(golden):
    found = rt.rehearse(inputs.rates(120), inputs.RATES, inputs.RATE_CASES, method="auto", **QUICK)
    golden(of_decisions(found) | {"chosen": found.model.choice.chosen})


def test_costs(golden):
    task = {**priced.TASK, "costs": priced.COSTS, "worth": priced.WORTH}
    golden(of_decisions(rt.rehearse(priced.rows(300), task, priced.CASES)))


def test_costs_without_worth(golden):
    task = {**priced.TASK, "costs": priced.COSTS}
    golden(of_decisions(rt.rehearse(priced.rows(300), task, priced.CASES, method="care")))


def test_present_values(golden):
    inputs.written(table_csv=inputs.rates(), problem_yaml=inputs.CURRENT)
    golden(of_decisions(rt.rehearse("problem.yaml")))


def test_texts(golden):
    cases = [{"ward": "C", "smoker": "yes"}, {"ward": "A", "smoker": "no"}, {"ward": "B", "smoker": "yes"}]
    golden(of_decisions(rt.rehearse(inputs.stays(), inputs.STAYS, cases)))


def test_classes_to_set(golden):
    cases = [{"old": 0, "treatment": "A"}, {"old": 1, "treatment": "A"}, {"old": 1, "treatment": "C"}]
    golden(of_decisions(rt.rehearse(inputs.patients(), inputs.CHOICE, cases)))


def test_imputed(golden):
    inputs.written(table_csv=inputs.holed(), problem_yaml=inputs.CURRENT + "missing: {impute: 3}\n")
    golden(of_decisions(rt.rehearse("problem.yaml")))


@pytest.mark.parametrize("method", ["outcome_regression", "care"])
def test_cross_fitted(golden, method):
    table = inputs.rates(120)
    golden(
        of_decisions(
            rt.rehearse(table, inputs.RATES, inputs.RATE_CASES, method=method, claims="cross_fitted")
        )
    )


def test_graphs_in_doubt(golden):
    doubt = {"parents": {"u": ["x"], "z": ["x"], "y": ["x", "u", "z"]}, "undirected": [["u", "z"]]}
    found = rt.rehearse(inputs.rates(), inputs.RATES, inputs.RATE_CASES, graphs=doubt)
    shares = [{name: each.trace["graphs"][name] for name in ("stand", "worst")} for each in found]
    golden(of_decisions(found) | {"graphs": shares})


def test_learnt_graph(golden):
    arrows = 'graph: ["x -> {u z y}", "u -> {z y}", "z -> y"]'
    inputs.written(table_csv=inputs.rates(), problem_yaml=inputs.CURRENT.replace(arrows, "graph: learn"))
    golden(of_decisions(rt.rehearse("problem.yaml")))


def test_sequential_adjustment(golden):
    """v follows the first action, and leads to the second and to the outcome."""
    table = inputs.two_stages()
    golden(of_decisions(rt.rehearse(table, inputs.TWO_STAGES, [{"x": -0.5}, {"x": 0.5}])))


def test_refused(golden):
    """A hidden common cause of action and outcome, and an action without a path to the outcome."""
    hidden = {**inputs.RATES, "graph": ["x -> {u z y}", "u -> y", "z -> y", "z <-> y"]}
    without = {**inputs.RATES, "graph": ["x -> {u z y}", "u -> {z y}"]}
    lines = [
        of_line(each.to_dict())
        for task in (hidden, without)
        for each in rt.rehearse(inputs.rates(), task, inputs.RATE_CASES[:2])
    ]
    golden({"widths": {"z": 1.0}, "decisions": lines})


def test_units(golden):
    table = inputs.rates().assign(store=[f"store {row // 10}" for row in range(200)])
    golden(of_decisions(rt.rehearse(table, {**inputs.RATES, "unit": "store"}, inputs.RATE_CASES)))
