"""Costs of classes, in a world whose truth is enumerated (`tests.toys.class_world`): the class with the
largest net value is found in each case, and what it nets is the most that can be had.
"""

import json
import warnings

import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.console_command import main as program
from rehearsal_torch.user_error import RequestWarning
from tests.toys.class_world import TREATMENTS, rows, truth

WORTH, PRICES = 100, {"A": 0, "B": 40, "C": 25}
TASK = {
    "graph": ["severe -> {treatment status}", "treatment -> status"],
    "context": ["severe"],
    "box": {"treatment": {"values": ["A", "B", "C"]}},
    "region": "status in {well, mild}",
    "codings": {"treatment": "categorical", "status": "categorical"},
    "costs": {"treatment": PRICES},
    "worth": WORTH,
}
CASES = [{"severe": severe, "treatment": present} for severe in (0, 1) for present in TREATMENTS]


def net(case, treatment):
    """The true net value of a treatment in a case."""
    paid = 0 if treatment == case["treatment"] else PRICES[treatment]
    return WORTH * truth(case["severe"], treatment, ("well", "mild")) - paid


def decided(method, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RequestWarning)
        model = rt.learn(rows(800), TASK | changes, method=method)
    return model, model.decide(CASES).to_frame()


@pytest.mark.bench
@pytest.mark.parametrize("method", ["outcome_regression", "cme"])
def test_the_class_that_nets_most_is_found(method):
    model, frame = decided(method)
    best = [max(TREATMENTS, key=lambda each: net(case, each)) for case in CASES]
    # Without costs it is B where the case is not severe, and C where it is.
    assert best == ["A", "B", "A", "C", "C", "C"]
    chosen = frame["set/treatment"].fillna(frame["present/treatment"]).tolist()
    assert chosen == best
    achieved = sum(net(case, each) for case, each in zip(CASES, chosen, strict=True))
    assert achieved == pytest.approx(sum(net(case, each) for case, each in zip(CASES, best, strict=True)))
    for case, (_, row), each in zip(CASES, frame.iterrows(), best, strict=True):
        kept = each == case["treatment"]
        assert row["cost"] == (0 if kept else PRICES[each])
        assert (row["status"] == "leave") == kept
        assert row["net_value"] == pytest.approx(net(case, each), abs=10)
    # The dearer change is told with its cost as well.
    told = model.what_if(CASES[2], {"treatment": "B"})
    assert told.cost == 40
    assert told.net_gain.point == pytest.approx(net(CASES[2], "B") - net(CASES[2], "C"), abs=15)


@pytest.mark.slow
def test_a_saved_model_keeps_its_prices(tmp_path):
    model, frame = decided("outcome_regression")
    again = rt.load(model.save(tmp_path / "model"))
    assert again.task.to_plain() == model.task.to_plain()
    assert again.task.to_plain()["costs"]["treatment"]["levels"] == {"A": 0.0, "B": 40.0, "C": 25.0}
    pd.testing.assert_frame_equal(again.decide(CASES).to_frame(), frame)


PROBLEM = """
data: table.csv
variables:
  severe: {role: context, kind: binary}
  treatment: {role: action, kind: categorical, cost: {A: 0, B: 40, C: 25}}
  status: {role: outcome, kind: categorical}
graph: ["severe -> {treatment status}", "treatment -> status"]
desired: status in {well, mild}
cases:
- {severe: 0, treatment: C}
- {severe: 1, treatment: B}
method: outcome_regression
worth: 100
"""


@pytest.mark.bench
def test_a_problem_file_says_what_each_class_costs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows(800).to_csv("table.csv", index=False)
    (tmp_path / "problem.yaml").write_text(PROBLEM)
    assert program(["check", "problem.yaml"]) == 0
    said = capsys.readouterr().out
    assert "Costs of changes, of which a desired outcome is worth 100:" in said
    assert (
        "  treatment: 0 to A, 40 to B, 25 to C; from the present value, or from the usual one, A, where"
        in said
    )
    assert program(["decide", "problem.yaml", "out=run", "workers=1"]) == 0
    said = capsys.readouterr().out
    assert "May help: set treatment from C to A." in said
    assert "et treatment from B to C." in said
    lines = [json.loads(line) for line in (tmp_path / "run" / "decisions.jsonl").read_text().splitlines()]
    assert [line["cost"] for line in lines] == [0.0, 25.0]
    assert "It costs 25 and nets +" in (tmp_path / "run" / "report.html").read_text()
    # A method that looks for something else is refused in a paragraph.
    (tmp_path / "problem.yaml").write_text(PROBLEM.replace("outcome_regression", "qwz23"))
    assert program(["check", "problem.yaml"]) == 2
    assert "qwz23 does not look for the largest probability of a desired outcome" in capsys.readouterr().err
