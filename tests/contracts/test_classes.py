"""Actions and outcomes of three classes in a world whose truth is enumerated (`tests.toys.class_world`)."""

import json
import warnings
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.console_command import main as program
from rehearsal_torch.explorer.open_run import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.user_error import RequestWarning
from tests.toys.class_world import TREATMENTS, rows, truth, usual

METHODS = ("outcome_regression", "cme")
GROUPED = {
    "graph": ["severe -> {better status}", "better -> status"],
    "context": ["severe"],
    "box": {"better": {"values": ["A", "B"]}},
    "region": "status in {well, mild}",
    "codings": {"better": ["A", "B"], "status": "categorical"},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", METHODS)
def test_the_chance_of_the_desired_classes_is_that_of_the_world(method):
    # Of two treatments only, as a variable of two texts: the outcome alone has classes.
    table = rows(1500)
    table = table[table["treatment"] != "C"].rename(columns={"treatment": "better"})
    model = rt.learn(table, GROUPED, method=method)
    for severe, best in ((0, "B"), (1, "A")):
        decision, told = (
            model.decide({"severe": severe})[0],
            model.what_if({"severe": severe}, {"better": best}),
        )
        assert decision.alteration.values.tolist() == [float(best == "B")]
        assert told.estimate.point == pytest.approx(truth(severe, best, ("well", "mild")), abs=0.06)
        assert told.estimate.lower < truth(severe, best, ("well", "mild")) < told.estimate.upper


ONE = {
    "graph": ["severe -> {treatment status}", "treatment -> status"],
    "context": ["severe"],
    "box": {"treatment": {"values": ["A", "B", "C"]}},
    "region": "status in {well, mild}",
    "codings": {"treatment": "categorical", "status": "categorical"},
}
CASES = [{"severe": 0, "treatment": "C"}, {"severe": 1, "treatment": "C"}, {"severe": 1, "treatment": "A"}]


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RequestWarning)
        return rt.learn(rows(800), ONE, method="outcome_regression")


@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "desired",
    [
        pytest.param(("well", "mild"), marks=pytest.mark.slow),
        *(pytest.param(each, marks=pytest.mark.bench) for each in (("well",), ("ill",))),
    ],
)
def test_the_best_class_of_each_context_is_found(method, desired):
    task = ONE | {"region": f"status in {{{', '.join(desired)}}}"}
    asked = rt.learn(rows(1500), task, method=method)
    for severe in (0, 1):
        best = max(TREATMENTS, key=lambda each: truth(severe, each, desired))
        (decision,) = asked.decide({"severe": severe})
        assert asked.task.worded(decision.to_dict()["alteration"]) == {"treatment": best}
        assert decision.baseline.point == pytest.approx(usual(severe, desired), abs=0.05)
        for each in TREATMENTS:
            told = asked.what_if({"severe": severe}, {"treatment": each}).estimate
            assert told.point == pytest.approx(truth(severe, each, desired), abs=0.08)
        assert decision.estimate.lower < truth(severe, best, desired) < decision.estimate.upper


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", METHODS)
def test_which_class_is_the_reference_hardly_matters(method):
    table, found = rows(800), []
    for reference in TREATMENTS:
        coding = {"classes": list(TREATMENTS), "reference": reference}
        asked = rt.learn(table, ONE | {"codings": ONE["codings"] | {"treatment": coding}}, method=method)
        claims = [
            asked.what_if({"severe": severe}, {"treatment": each}).estimate.point
            for severe in (0, 1)
            for each in TREATMENTS
        ]
        found.append(claims)
    assert np.ptp(found, axis=0).max() < 0.03


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", METHODS)
def test_classes_are_desired_beside_a_number(method):
    means = {"A": 0.0, "B": 1.0, "C": 0.5}
    table = rows(2000)
    noise = 0.5 * np.random.default_rng(0).normal(size=len(table))
    table["cost"] = table["treatment"].map(means) + noise
    task = ONE | {
        "graph": ["severe -> {treatment status}", "treatment -> {status cost}"],
        "region": "status in {well, mild} and cost <= 0.8",
    }
    asked = rt.learn(table, task, method=method)
    for severe, best in ((0, "A"), (1, "C")):
        for each, mean in means.items():
            cheap = NormalDist(mean, 0.5).cdf(0.8)
            told = asked.what_if({"severe": severe}, {"treatment": each}).estimate
            assert told.point == pytest.approx(truth(severe, each, ("well", "mild")) * cheap, abs=0.05)
        (decision,) = asked.decide({"severe": severe})
        assert asked.task.worded(decision.to_dict()["alteration"]) == {"treatment": best}


def test_present_classes_are_compared_and_told_in_texts(model):
    made = model.decide(CASES)
    frame = made.to_frame()
    assert frame["present/treatment"].tolist() == ["C", "C", "A"]
    assert frame["set/treatment"].fillna("").tolist() == ["B", "", "C"]
    # Rows like these cases are no extrapolation, although their distances are rounded.
    assert not any("support" in text for each in made for text in each.warnings)
    assert not [name for name in frame if "=" in name]
    assert made[1].reason.kind == "no_gain"
    assert made[1].reason.text.startswith("predicted no better than leaving treatment at C")
    gain = truth(0, "B", ("well", "mild")) - truth(0, "C", ("well", "mild"))
    assert made[0].gain.point == pytest.approx(gain, abs=0.1)
    with pytest.raises(ValueError, match="treatment: expected one of A, B, C; got 'D' in line 2"):
        model.decide({"severe": 0, "treatment": "D"})


def test_settings_are_asked_in_texts(model):
    told = model.what_if(CASES[0], {"treatment": "B"})
    assert told.sentence().startswith(
        "With treatment at B, the estimated chance that status is well or mild is "
    )
    assert told.alteration == {"treatment=B": 1.0, "treatment=C": 0.0}
    both = model.compare(CASES[0], {"treatment": "B"}, {"treatment": "A"})
    assert both.sentence().startswith("treatment=B against treatment=A: the first is better")
    with pytest.raises(ValueError, match="treatment: expected one of A, B, C; got 'D'"):
        model.what_if(CASES[0], {"treatment": "D"})
    with pytest.raises(ValueError, match="treatment may be set to one of A, B, C; got several at once"):
        model.what_if(CASES[0], {"treatment=B": 1.0, "treatment=C": 1.0})
    with pytest.raises(ValueError, match=r"expected values for one of the candidate sets \{treatment\}"):
        model.what_if(CASES[0], {"treatment=B": 1.0})


def test_an_explanation_says_classes(model):
    told = model.explain(CASES[0], rows=True, refits=0)
    said = " ".join([*told.sentences(), *map(str, told.to_frame()["about"])])
    assert "treatment=B=" not in said
    assert "Setting treatment is adjusted for severe" in said
    (second,) = [each for each in told.runners_up if each.of == "action"]
    assert second.alteration["treatment"] in ("A", "C")
    assert set(told.rows.contents["treatment"]) <= set(TREATMENTS)
    assert set(told.rows.contents["status"]) <= {"well or mild", "ill"}


def test_a_saved_model_keeps_its_classes(model, tmp_path):
    again = rt.load(model.save(tmp_path / "model"))
    pd.testing.assert_frame_equal(again.decide(CASES).to_frame(), model.decide(CASES).to_frame())
    assert again.task.to_plain() == model.task.to_plain()
    assert again.task.to_plain()["box"] == {"treatment": {"values": ["A", "B", "C"]}}
    assert again.task.to_plain()["candidates"] == [["treatment"]]
    assert again.what_if(CASES[0], {"treatment": "B"}) == model.what_if(CASES[0], {"treatment": "B"})
    read = (
        (tmp_path / "model" / "README.md").read_text() if (tmp_path / "model" / "README.md").exists() else ""
    )
    assert "treatment=B" not in read


def test_the_explorer_offers_classes_by_their_places(model, tmp_path):
    session = RehearsalSession(opened(model.save(tmp_path / "model")))
    told = session.describe()
    assert told["sets"] == [["treatment"]]
    assert told["actions"]["treatment"]["texts"] == ["A", "B", "C"]
    assert told["actions"]["treatment"]["levels"] == [0.0, 1.0, 2.0]
    assert told["question"][:2] == [
        "What should be set in each case? Candidates: treatment (one of A, B, C).",
        "Wanted: an outcome with status well or mild.",
    ]
    session.first_answer()
    answer = session.what_if(None, {"severe": 0.0}, {"treatment": 1.0})
    assert answer["setting"] == {"treatment": 1.0}
    assert answer["sentence"].startswith(
        "With treatment at B, the estimated chance that status is well or mild"
    )
    decided = session.recommend(None, {"severe": 1.0})
    assert (decided["headline"], decided["setting"]) == ("Set treatment to C.", {"treatment": 2.0})
    (curve,) = session.charts(None, {"severe": 0.0}, {"treatment": 1.0})["curves"]
    assert (curve["at"], curve["texts"], curve["levels"]) == ([0.0, 1.0, 2.0], ["A", "B", "C"], True)
    assert curve["point"][1] == answer["estimate"]["point"]
    assert curve["bins"]["at"] == [0.0, 1.0, 2.0]
    assert curve["bins"]["counts"] == rows(800)["treatment"].value_counts().sort_index().tolist()
    with pytest.raises(ValueError, match="treatment: expected the place of one of A, B, C, from 0 to 2"):
        session.what_if(None, {"severe": 0.0}, {"treatment": 1.5})


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", ["care", "cme", "outcome_regression", "qwz23", "qwz23_offline"])
def test_every_method_sets_at_most_one_indicator(method):
    random = np.random.default_rng(1)
    table = rows(300).assign(dose=random.random(300))
    table["status"] = np.where(random.random(300) < 0.2 * table["dose"], "well", table["status"])
    task = ONE | {
        "graph": ["severe -> {treatment status}", "treatment -> dose", "{dose treatment} -> status"],
        "box": {"treatment": {"values": ["C", "A", "B"]}, "dose": [0, 1]},
        "candidates": [["treatment"], ["dose"], ["dose", "treatment"]],
    }
    asked = rt.learn(table, task, method=method)
    columns = set(asked.task.coded["treatment"].columns)
    assert asked.task.candidates == (tuple(sorted(columns)), ("dose",), ("dose", *sorted(columns)))
    for decision in asked.decide(
        [{"severe": 0}, {"severe": 1}, {"severe": 1, "treatment": "A", "dose": 0.5}]
    ):
        held = decision.alteration or decision.trace.get("would_set", {})
        values = held if isinstance(held, dict) else dict(zip(held.names, held.values.tolist(), strict=True))
        assert sum(value for name, value in values.items() if name.startswith("treatment=")) in (0.0, 1.0)
        assert {name for name in values if "=" in name} in (set(), columns)


@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
def test_a_method_that_weighs_changes_refuses_classes():
    with pytest.raises(
        ValueError, match=r"treatment has classes .*C, A, B.*, and a change from one to another"
    ):
        rt.learn(rows(100), ONE, method="micns")


PROBLEM = """
data: table.csv
variables:
  severe: {role: context, kind: binary}
  treatment: {role: action, kind: categorical, levels: [A, B, C]}
  status: {role: outcome, kind: categorical}
graph: ["severe -> {treatment status}", "treatment -> status"]
desired: status in {well, mild}
"""


@pytest.fixture
def written(tmp_path):
    rows(200).to_csv(tmp_path / "table.csv", index=False)

    def write(more="", **changes):
        text = PROBLEM
        for old, new in changes.items():
            text = text.replace(old, new)
        (tmp_path / "problem.yaml").write_text(text + more)
        return tmp_path / "problem.yaml"

    return write


def test_a_problem_file_of_classes_is_compiled(written):
    cases = "cases:\n- {severe: 0, treatment: C}\n- {severe: 1}\n"
    problem = OwnProblem(written(cases))
    assert problem.task.box.names == ("treatment=B", "treatment=C")
    assert problem.task.candidates == (("treatment=B", "treatment=C"),)
    assert problem.present == [{"treatment=B": 0.0, "treatment=C": 1.0}, {}]
    assert problem.task.region.offsets.tolist() == [-0.5]
    assert problem.findings() == ()


def test_complete_cases_are_used_where_classes_are_missing(written, tmp_path):
    gaps = rows(200)
    gaps.loc[[3, 50], "treatment"] = None
    gaps.loc[7, "status"] = None
    gaps.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "problem.yaml").write_text(PROBLEM)
    problem = OwnProblem(tmp_path / "problem.yaml")
    assert len(problem.every) == 197
    assert problem.problem.gaps.cells.columns == {"treatment": 2, "status": 1}


@pytest.mark.slow
def test_a_run_folder_is_told_in_texts(written, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = written("cases:\n- {severe: 0, treatment: C}\n- {severe: 1}\nmethod: outcome_regression\n")
    assert program(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "treatment  action   categorical" in said
    assert "treatment: A, B, C, with A as the reference" in said
    assert "status: mild or well = 1, ill = 0" in said
    typed = ["decide", f"path={file}", "+experiment=own_problem", "out=run", "workers=1"]
    assert program(typed) == 0
    assert "may help: set treatment from C to B" in capsys.readouterr().out
    lines = (tmp_path / "run" / "decisions.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["alteration"] == {"treatment=B": 1.0, "treatment=C": 0.0}
    card = yaml.safe_load((tmp_path / "run" / "data.yaml").read_text())
    assert card["codings"]["treatment"] == {"classes": ["A", "B", "C"], "reference": "A"}
    assert card["codings"]["status"] == {"classes": ["ill", "mild", "well"], "desired": ["mild", "well"]}
    claims = pd.read_csv(tmp_path / "run" / "claims.csv")
    assert set(claims["along"]) == {"treatment"}
    assert claims.loc[claims["series"] == "claim", "x"].unique().tolist() == [0.0, 1.0, 2.0]
    table = pd.read_csv(tmp_path / "run" / "table.csv")
    assert table["set/treatment"].tolist() == ["B", "C"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Wanted: an outcome with status mild or well." in page
    assert "treatment (one of A, B, C)" in page
    assert "treatment=" not in page
    assert program(["check", str(written("method: micns\n"))]) == 2
    assert (
        "method: treatment has classes (A, B, C), and a change from one to another" in capsys.readouterr().err
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
@pytest.mark.parametrize("method", METHODS)
def test_what_is_wrong_with_the_graph_is_told_of_the_variable(method):
    hidden = ONE | {"graph": [*ONE["graph"], "treatment <-> status"]}
    asked = rt.learn(rows(200), hidden, method=method)
    (decision,) = asked.decide(CASES[0])
    # The default leaves what is not identified, and `cme` warns.
    said = [each.text for each in (*decision.findings, decision.reason) if each and each.kind == "adjustment"]
    assert len(said) == 1
    assert (
        "treatment and status have a common cause that is not blocked by severe (treatment -> status "
        "accompanies treatment <-> status), and treatment acts on status directly, so that there is no front "
        "door"
    ) in said[0]
    assert "treatment=" not in asked.explain(CASES[0], refits=0).adjusted[0].sentence()
    pathless = ONE | {"graph": ["severe -> {treatment status}"]}
    (decision,) = rt.rehearse(rows(200), pathless, CASES[:1], method=method)
    assert decision.reason.text.startswith(
        "the graph has no directed path from treatment to status: setting treat"
    )
    told = " ".join(each.text for each in decision.findings if each.kind == "refuted_graph")
    assert "treatment=" not in told
