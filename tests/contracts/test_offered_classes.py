"""Some classes of an action alone are offered, in a world whose truth is enumerated
(`tests.toys.class_world`): models know all classes, decisions and their baselines too, and only those that
are offered are set.
"""

import warnings

import pytest

import rehearsal_torch as rt
from rehearsal_torch.console_command import main as program
from rehearsal_torch.explorer.open_run import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.user_error import RequestWarning
from tests.toys.class_world import rows, truth

TASK = {
    "graph": ["severe -> {treatment status}", "treatment -> status"],
    "context": ["severe"],
    "box": {"treatment": {"values": ["A", "C"]}},
    "region": "status in {well, mild}",
    "codings": {"treatment": "categorical", "status": "categorical"},
}
DESIRED = ("well", "mild")
CASES = [{"severe": 0, "treatment": "B"}, {"severe": 0, "treatment": "A"}, {"severe": 1, "treatment": "B"}]


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RequestWarning)
        return rt.learn(rows(800), TASK, method="outcome_regression")


def test_the_best_of_those_offered_is_compared_with_the_present_class(model):
    made = model.decide(CASES)
    frame = made.to_frame()
    # B, the best of all where the case is not severe, stays where it is and is set nowhere.
    assert frame["present/treatment"].tolist() == ["B", "A", "B"]
    assert frame["set/treatment"].fillna("").tolist() == ["", "", "C"]
    assert made[0].reason.text.startswith("predicted no better than leaving treatment at B")
    gain = truth(1, "C", DESIRED) - truth(1, "B", DESIRED)
    assert made[2].gain.point == pytest.approx(gain, abs=0.1)
    assert model.task.to_plain()["box"] == {"treatment": {"values": ["A", "C"]}}


def test_what_is_not_offered_is_not_asked(model, tmp_path):
    with pytest.raises(ValueError, match=r"treatment may be set to one of A, C; got .*: take one of these"):
        model.what_if(CASES[0], {"treatment": "B"})
    told = model.explain(CASES[2], rows=False, refits=0)
    (second,) = [each for each in told.runners_up if each.of == "action"]
    assert second.alteration["treatment"] == "A"
    session = RehearsalSession(opened(model.save(tmp_path / "model")))
    assert session.describe()["actions"]["treatment"]["levels"] == [0.0, 2.0]
    session.first_answer()
    (curve,) = session.charts(None, {"severe": 0.0}, {"treatment": 0.0})["curves"]
    assert (curve["at"], curve["texts"]) == ([0.0, 2.0], ["A", "B", "C"])


@pytest.mark.slow
def test_one_class_is_enough():
    task = TASK | {"box": {"treatment": {"values": ["C"]}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RequestWarning)
        made = rt.learn(rows(800), task, method="outcome_regression").decide(CASES)
    assert made.to_frame()["set/treatment"].fillna("").tolist() == ["", "", "C"]


PROBLEM = """
data: table.csv
variables:
  severe: {role: context, kind: binary}
  treatment: {role: action, kind: categorical, levels: [A, B, C], offered: [B, A]}
  status: {role: outcome, kind: categorical}
graph: ["severe -> {treatment status}", "treatment -> status"]
desired: status in {well, mild}
cases:
- {severe: 1, treatment: C}
- {severe: 0, treatment: C}
"""


def test_a_problem_file_offers_some_classes(tmp_path, capsys):
    rows(200).to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "problem.yaml").write_text(PROBLEM)
    problem = OwnProblem(tmp_path / "problem.yaml")
    assert problem.task.box.levels == {"treatment=B": (0.0, 1.0), "treatment=C": (0.0,)}
    assert problem.present[0] == {"treatment=B": 0.0, "treatment=C": 1.0}
    assert program(["check", str(tmp_path / "problem.yaml")]) == 0
    said = capsys.readouterr().out
    (line,) = [each for each in said.splitlines() if each.startswith("treatment ")]
    assert line.endswith("A, B")
    assert "treatment: A, B, C, with A as the reference" in said
    assert (
        "variables.treatment.offered: may be set to one of A, B, and case 1 has C at present and 1 more: "
        "what is offered does not hold the present value"
    ) in said
    assert "treatment=" not in said
