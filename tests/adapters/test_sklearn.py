"""The estimator of scikit-learn: its contract, predictions by least squares, the linear decisions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import rehearsal_torch as rt
from rehearsal_torch.adapters.sklearn import CellError, RehearsalDecider, numeric, spoken
from rehearsal_torch.data.tables.reader import TableError

COLUMNS = ["age", "sex", "bmi", "bp"]
BOX = {"bmi": (20.0, 32.0), "bp": (75.0, 110.0)}


@pytest.fixture(scope="module")
def data():
    whole = load_diabetes(as_frame=True, scaled=False)
    return whole.data[COLUMNS], whole.target.rename("progression")


@pytest.fixture(scope="module")
def fitted(data):
    return RehearsalDecider(["bmi", "bp"], (None, 140.0), BOX).fit(*data)


@pytest.mark.slow
def test_it_keeps_the_contract_of_scikit_learn():
    found = check_estimator(RehearsalDecider(), on_skip=None, expected_failed_checks={})
    assert {each["status"] for each in found} <= {"passed", "skipped"}
    # One check needs an environment variable to be set before SciPy is imported.
    assert [each["check_name"] for each in found if each["status"] == "skipped"] == ["check_array_api_input"]


def test_predictions_are_those_of_least_squares(data, fitted):
    X, y = data
    plain = LinearRegression().fit(X, y)
    assert fitted.predict(X) == pytest.approx(plain.predict(X), rel=1e-5)
    assert fitted.score(X, y) == pytest.approx(plain.score(X, y), abs=1e-6)
    several = pd.DataFrame({"one": y, "two": X["age"] * 0.1 + y**0.5})
    both = RehearsalDecider(["bmi"]).fit(X, several)
    assert both.predict(X).shape == (len(X), 2)
    assert both.predict(X) == pytest.approx(LinearRegression().fit(X, several).predict(X), rel=1e-5)


@pytest.mark.slow
def test_decisions_are_those_of_the_linear_method(data, fitted):
    X, y = data
    parents = {"bmi": ["age", "sex"], "bp": ["age", "sex", "bmi"], "progression": COLUMNS}
    task = {
        "graph": {"parents": parents},
        "context": ["age", "sex"],
        "box": {name: list(ends) for name, ends in BOX.items()},
        "candidates": [["bmi", "bp"]],
        "region": {"progression": [None, 140]},
    }
    cases = X[["age", "sex"]].head(5)
    told = rt.rehearse(X.assign(progression=y), task, cases, method="care")
    wanted = told.to_frame()[["set/bmi", "set/bp"]].to_numpy()
    assert fitted.decide(cases) == pytest.approx(wanted, rel=1e-6)
    assert fitted.decide(X.head(5)) == pytest.approx(wanted, rel=1e-6)
    assert fitted.decide(cases.to_numpy()) == pytest.approx(wanted, rel=1e-6)
    for one, other in zip(fitted.decisions(cases), told, strict=True):
        assert one.estimate.point == pytest.approx(other.estimate.point, abs=1e-4)
        assert one.warnings == other.warnings


def test_where_nothing_is_recommended_the_actions_are_missing(data):
    X, y = data
    impossible = RehearsalDecider(["bp"], (None, 140.0), {"bp": (110.0, 110.0)}).fit(X[["age", "bp"]], y)
    found = impossible.decisions(X[["age"]].head(3))
    assert {each.reason.kind for each in found} == {"no_gain"}
    assert np.isnan(impossible.decide(X[["age"]].head(3))).all()


def test_it_works_in_clones_pipelines_and_searches(data):
    X, y = data
    one = RehearsalDecider(["bmi"], (None, 140.0), seed=3)
    assert clone(one).get_params() == one.get_params()
    piped = make_pipeline(StandardScaler().set_output(transform="pandas"), one)
    search = GridSearchCV(piped, {"rehearsaldecider__actions": [["bmi"], ["bp"]]}, cv=3).fit(X, y)
    assert search.best_score_ == pytest.approx(0.4, abs=0.1)
    decider = search.best_estimator_[-1]
    assert decider.decide(np.zeros((2, 3))).shape == (2, 1)


def test_without_names_columns_are_places_and_a_context_is_not_needed(data):
    X, y = data
    alone = RehearsalDecider(region=(None, 140.0)).fit(X[["bmi"]].to_numpy(), y.to_numpy())
    assert alone.task_.box.bounds() == {"x0": (18.0, 42.2)}
    assert alone.decide(np.empty((1, 0))) == pytest.approx(np.array([[18.0]]), abs=1e-4)
    last = RehearsalDecider([-1], {"progression": (None, 140.0)}).fit(X.to_numpy(), y)
    assert last.task_.context == ("x0", "x1", "x2")
    assert last.task_.outcomes == ("progression",)


def test_a_parameter_that_names_nothing_is_refused(data, fitted):
    with pytest.raises(ValueError, match=r"actions: 'weight' is none of \['age', 'sex', 'bmi', 'bp'\]"):
        clone(fitted).set_params(actions=["weight"]).fit(*data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X * 1e200, "age: 5.9e.201 in row 0 is too large to compute with"),
        (
            lambda X: X.assign(bp=pd.Timestamp("2020-01-31")),
            "bp: expected numbers; got '2020-01-31 00:00:00'",
        ),
        (lambda X: X.set_axis(["age", "sex", "bmi", "bmi"], axis=1), "several columns are called 'bmi'"),
    ],
)
def test_tables_are_held_to_what_files_are(data, fitted, change, words):
    X, y = data
    with pytest.raises(ValueError, match=words):
        clone(fitted).set_params(actions=["bmi"], bounds=None).fit(change(X), y)
    with pytest.raises(ValueError, match=words):
        fitted.predict(change(X))


def test_an_outcome_and_a_context_are_held_to_the_same(data, fitted):
    X, y = data
    with pytest.raises(ValueError, match=r"y: 1 fault.*\n- progression: .* is too large"):
        clone(fitted).fit(X, y * 1e200)
    with pytest.raises(ValueError, match=r"y: 1 fault.*\n- progression: expected numbers; got '151.0 kg'"):
        clone(fitted).fit(X, y.astype(str) + " kg")
    with pytest.raises(ValueError, match=r"contexts: 1 fault.*\n- age: 5.9e.201 in row 0 is too large"):
        fitted.decide(X.assign(age=X["age"] * 1e200))
    # Columns beside the context may hold anything.
    assert fitted.decide(X.head(2).assign(bp="high")) == pytest.approx(fitted.decide(X.head(2)))


def test_questions_that_cannot_be_answered_are_refused(data, fitted):
    X, y = data
    with pytest.raises(ValueError, match="region: expected the desired outcomes when it was fitted, such as"):
        RehearsalDecider(["bmi"]).fit(X, y).decide(X)
    with pytest.raises(ValueError, match=r"contexts: no column \['sex'\]; expected \['age', 'sex'\]"):
        fitted.decide(X[["age"]])
    with pytest.raises(ValueError, match=r"contexts: expected the columns \['age', 'sex'\]; got 4 columns"):
        fitted.decide(X.to_numpy())
    with pytest.raises(NotFittedError):
        RehearsalDecider().decide(X)


def test_whole_numbers_of_numpy_are_seeds_and_draws(data):
    X, y = data
    made = RehearsalDecider(["bmi"], draws=np.int64(8), seed=np.int32(3)).fit(X, y)
    assert type(made.surrogate_.draws) is int
    for wrong in ({"seed": True}, {"draws": np.bool_(True)}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected a whole number"):
            RehearsalDecider(["bmi"], **wrong).fit(X, y)


@pytest.mark.parametrize("role", ["X", "y"])
def test_structured_and_masked_arrays_are_refused(role):
    rows = np.random.default_rng(0).normal(size=(20, 2))
    given = {"X": rows, "y": rows.sum(1)}
    odd = given[role]
    kinds = [("one", float), ("two", float)]
    for wrong, words in (
        (np.ma.masked_array(odd, mask=odd > 1), "some cells are masked: fill them"),
        (np.array([(1.0, 2.0)] * 20, dtype=kinds), "got a structured array: write its fields as columns"),
    ):
        with pytest.raises(ValueError, match=f"{role}: expected a table of numbers.*{words}"):
            RehearsalDecider().fit(**given | {role: wrong})


NUMBERS = np.arange(6.0).reshape(3, 2)


def test_arrays_of_numbers_pass_as_they_are():
    for given in (NUMBERS, NUMBERS.astype(int), NUMBERS * 1j, NUMBERS[0], NUMBERS[None], [[1, 2], [3, 4]]):
        assert numeric(given, "X") is given
    made = numeric(torch.tensor(NUMBERS, dtype=torch.bfloat16, requires_grad=True), "X")
    assert made.dtype == np.float64
    assert made.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: pl.DataFrame(dict(frame.items()))])
def test_of_a_frame_the_numbers_are_read_with_their_names(make):
    frame = pd.DataFrame(NUMBERS.astype(str), columns=["a", "b"])
    found = numeric(make(frame), "X")
    assert (list(found.columns), found.to_numpy().tolist()) == (["a", "b"], NUMBERS.tolist())
    some = numeric(make(frame.assign(c="text")), "X", ["b", "a"])
    assert some.to_numpy().tolist() == NUMBERS[:, ::-1].tolist()


def test_names_that_are_no_texts_are_left_out():
    found = numeric(pd.DataFrame(NUMBERS, columns=[7, 8]), "X")
    assert isinstance(found, np.ndarray)
    assert found.tolist() == NUMBERS.tolist()
    assert numeric(pd.Series([1, 2], name="a"), "y").tolist() == [1, 2]
    assert numeric(np.array(["1", "2.5"]), "y").tolist() == [1, 2.5]
    assert numeric(pd.DataFrame(index=range(3)), "contexts", []).shape == (3, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame(NUMBERS, columns=["a", "a"]), "X: several columns are called 'a': rename them"),
        (
            scipy.sparse.csr_array(NUMBERS),
            "got a csr_array: make an array of it, such as by .toarray.. of a sp",
        ),
        (pl.DataFrame({"a": [1]}).lazy(), "expected a data frame in memory; got a lazy LazyFrame"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(given, words):
    with pytest.raises(TableError, match=f"(?s){words}"):
        numeric(given, "X")


def test_a_cell_that_is_neither_number_nor_text_is_an_error_of_type_as_well():
    assert issubclass(CellError, TypeError)


def test_what_others_refuse_is_said_with_the_argument():
    with (
        pytest.raises(TableError, match=r"\AX and y: no two dimensions: expected a table"),
        spoken("X and y"),
    ):
        raise TypeError("no two dimensions.")
    with pytest.raises(TableError, match=r"\Aown\Z"), spoken("X"):
        raise TableError("own")
