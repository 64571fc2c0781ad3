"""First drafts: guesses, reasons for what is left out, and files that are read."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.data.problem_file.cases_builder import ProblemError, written_problem
from rehearsal_torch.data.tables.reader import ReadTable, TableError
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.problems.drafts.draft_yaml import MARK
from rehearsal_torch.problems.drafts.problem_draft import cases_draft
from rehearsal_torch.problems.drafts.role_guesses import Source

RANDOM = np.random.default_rng(0)


def rows(**more):
    x, dose = RANDOM.normal(size=60), RANDOM.integers(0, 5, 60)
    frame = pd.DataFrame({"x": x, "sex": RANDOM.integers(0, 2, 60), "dose": dose, "result": dose + x})
    return frame.assign(**more)


def drafted(frame, **typed):
    table = ReadTable(frame, "t.csv", ("t.csv is read as it is",))
    return cases_draft(Source(table, "t.csv", "problem.yaml", typed))[0]


def test_roles_and_kinds_are_guessed_and_reasons_given():
    frame = rows(
        **{
            "row": np.arange(60),
            "two words": RANDOM.normal(size=60),
            "who": "a",
            "same": 1.0,
            "gap": [np.nan] * 60,
        }
    )
    text = drafted(frame)
    plain = yaml.safe_load(text)
    assert plain["variables"] == {
        "x": {"role": "context", "kind": "continuous"},
        "sex": {"role": "context", "kind": "binary"},
        "two words": {"role": "context", "kind": "continuous"},
        "dose": {"role": "action", "kind": "integer", "range": [0, 4]},
        "result": {"role": "outcome", "kind": "continuous"},
    }
    assert (plain["graph"], plain["desired"]) == (None, None)
    assert text.count(MARK) == 2
    for words in (
        "# t.csv is read as it is.",
        "# row: left out: it numbers the rows",
        "# who: left out: all 60 rows have one text",
        "# same: left out: all 60 values are 1",
        "# gap: left out: 60 of 60 values are missing",
        """# - '"two words" -> dose'""",
        "# - dose -> result",
    ):
        assert words in text, words


def test_without_names_that_say_it_roles_are_typed_or_open():
    frame = rows().rename(columns={"dose": "b", "result": "c", "x": "a"})
    text = drafted(frame)
    assert {each["role"] for each in yaml.safe_load(text)["variables"].values()} == {"context"}
    assert f"  {MARK}: role: outcome, for what should come out as desired (a, b, c)\n" in text
    assert f"  {MARK}: role: action, for what may be set (a, b, c)\n" in text
    assert f"desired: {MARK}, such as c <= " in drafted(frame, action=["b"])
    text = drafted(frame, outcome=["c"], action=["b", "sex"])
    told = yaml.safe_load(text)["variables"]
    assert {name: each["role"] for name, each in told.items()} == {
        "a": "context", "sex": "action", "b": "action", "c": "outcome"
    }  # fmt: skip
    assert "role:" not in text.partition(MARK)[2]
    for typed in ({"outcome": ["c"], "action": ["c"]}, {"action": ["same"]}):
        with pytest.raises(TableError, match=r"it is the outcome|all 60 values are 1"):
            drafted(frame.assign(same=1.0), **typed)


def test_what_is_to_be_filled_in_is_asked_for_by_the_check(tmp_path):
    rows().to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "problem.yaml").write_text(drafted(rows()))
    with pytest.raises(ProblemError) as told:
        written_problem(tmp_path / "problem.yaml")
    assert [each.split(": ")[0].split(", ")[1] for each in told.value.faults] == ["graph", "desired"]


def test_identifiers_are_left_out_and_one_of_them_names_the_cases(tmp_path):
    frame = rows(
        email=[f"p{place}@example.org" for place in range(60)],
        customer_id=[1000 + 3 * place for place in range(60)],
        store_id=[place // 6 for place in range(60)],
    )
    text = drafted(frame)
    plain = yaml.safe_load(text)
    assert (plain["identity"], plain["unit"]) == ("customer_id", "store_id")
    assert set(plain["variables"]) == {"x", "sex", "dose", "result"}
    words = (
        "# email: left out: it looks like an identifier: its name says that it holds a person's data (email)"
    )
    assert words in text
    assert "store_id: left out" not in text, "it has a purpose"
    assert "identity" not in yaml.safe_load(drafted(rows()))
    frame.to_csv(tmp_path / "t.csv", index=False)
    filled = text.replace("  # - ", "  - ").replace("desired: #", "desired: result >= 1 #")
    (tmp_path / "problem.yaml").write_text(filled)
    problem = written_problem(tmp_path / "problem.yaml")
    assert problem.form.identity == "customer_id"


def test_columns_of_few_texts_are_variables_and_of_many_are_none(tmp_path):
    frame = rows(
        ward=RANDOM.choice(list("ABC"), 60),
        severity=RANDOM.choice(["low", "medium", "high"], 60),
        treatment=RANDOM.choice(["no", "yes"], 60),
        note=[f"called {place // 2} times by Jane" for place in range(60)],
    ).drop(columns=["dose"])
    frame.insert(0, "outcome", RANDOM.choice(["ill", "well"], 60))
    frame = frame.drop(columns="result")
    text = drafted(frame)
    assert yaml.safe_load(text)["variables"] == {
        "x": {"role": "context", "kind": "continuous"},
        "sex": {"role": "context", "kind": "binary"},
        "ward": {"role": "context", "kind": "categorical"},
        "severity": {"role": "context", "kind": "ordinal", "levels": ["low", "medium", "high"]},
        "treatment": {"role": "action", "kind": "binary", "levels": ["no", "yes"]},
        "outcome": {"role": "outcome", "kind": "binary", "levels": ["ill", "well"]},
    }
    assert "# note: left out: 30 different texts" in text
    assert "Jane" not in text
    assert "such as outcome = well" in text
    assert "bounds" not in text
    frame.to_csv(tmp_path / "t.csv", index=False)
    filled = text.replace("  # - ", "  - ").replace("desired: #", "desired: outcome = well #")
    case = next(line for line in filled.splitlines() if line.startswith("#   - {"))
    (tmp_path / "problem.yaml").write_text(filled + f"cases:\n  {case.removeprefix('#   ')}\n")
    problem = written_problem(tmp_path / "problem.yaml")
    assert list(problem.task.coded) == ["ward", "severity", "treatment", "outcome"]
    assert problem.task.context == ("x", "sex", *problem.task.coded["ward"].columns, "severity")


def test_classes_are_actions_and_outcomes_by_their_names_or_where_there_is_nothing_else(tmp_path):
    frame = rows().drop(columns=["dose", "result"])
    frame = frame.assign(treatment=list("ABBC") * 15, label=RANDOM.choice(["x", "y", "z 1"], 60))
    text = drafted(frame)
    told = yaml.safe_load(text)["variables"]
    assert told["treatment"] == {"role": "action", "kind": "categorical"}
    assert told["label"] == {"role": "outcome", "kind": "categorical"}
    assert {each["role"] for name, each in told.items() if name not in ("treatment", "label")} == {"context"}
    assert "such as label in {x, y}" in text
    assert "A, B, C; one of them is set; offered: [A, C] offers fewer, cost: {A: 0, ...} prices a " in text
    frame.to_csv(tmp_path / "t.csv", index=False)
    filled = text.replace("  # - ", "  - ").replace("desired: #", "desired: label in {x, y} #")
    (tmp_path / "problem.yaml").write_text(filled)
    problem = written_problem(tmp_path / "problem.yaml")
    offered = problem.task.to_plain()["box"]["treatment"]["values"]
    assert sorted(offered) == ["A", "B", "C"]
    assert offered[0] == "B", "the most frequent class first"
    assert problem.task.coded["label"].desired == ("x", "y")
    beside = pd.DataFrame({"a": np.linspace(0, 1, 30) ** 2, "ward": ["A", "B", "C"] * 10})
    told = yaml.safe_load(drafted(beside))["variables"]
    assert (told["ward"]["role"], told["a"]["role"]) == ("action", "outcome")
    assert "such as ward in {A, B}" in drafted(beside, outcome=["ward"])


def loans():
    """The same whichever tests ran before."""
    draws = np.random.default_rng(3)
    months, age = draws.integers(1, 9, 80), draws.normal(40, 9, 80)
    return pd.DataFrame(
        {
            "customer_id": np.arange(1000, 1080),
            "region name": draws.choice(["East", "North"], 80),
            "grade": draws.choice(["A", "B", "C"], 80),
            "signed": [f"2024-01-{1 + place % 28:02d}" for place in range(80)],
            "age": age,
            "age in months": 12 * age,
            "rate": draws.uniform(3, 7, 80),
            "months": months,
            "repaid": draws.integers(0, 2, 80),
        }
    ).rename(columns={"repaid": "outcome"})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"outcome": ["yes", "no"] * 40},
        {"rate": ["low", "mid", "top", "mid"] * 20},
        {'the "age"': np.arange(80.0) % 7},
    ],
)
def test_every_suggestion_holds_once_the_comment_is_taken_away(tmp_path, more):
    frame = loans().assign(**more)
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = drafted(pd.read_csv(tmp_path / "t.csv"), action=["rate"])
    text = text.replace(f"desired: {MARK}, such as ", "desired: ").replace("  # - ", "  - ")
    for suggestion in ("cases", "bounds", "both"):
        filled = text
        if suggestion != "bounds":
            filled = filled.replace("# cases:\n#   - ", "cases:\n  - ")
        if suggestion != "cases":
            filled = filled.replace("# bounds:", "bounds:")
        (tmp_path / "problem.yaml").write_text(filled)
        problem = OwnProblem(tmp_path / "problem.yaml")
        assert problem.recorded is (suggestion == "bounds")
