"""Fitted methods: decisions for cases that come later."""

import pandas as pd
import polars as pl
import pytest

import rehearsal_torch as rt
from rehearsal_torch.data.tables.reader import TableError
from tests.api.test_rehearse import CASES, TASK, plain
from tests.api.test_rehearsed import frame as loans  # noqa: F401  the fixture


@pytest.fixture
def model(care):
    return care


def test_cases_of_every_form_get_the_same_decisions(model, tmp_path):
    cases = pd.DataFrame(CASES, index=["ann", "bob"])
    cases.to_csv(tmp_path / "cases.csv", index=False)
    first = model.decide(cases)
    assert list(first.to_frame().index) == ["ann", "bob"]
    others = [CASES, pl.DataFrame(CASES), rt.Table.from_frame(cases), tmp_path / "cases.csv"]
    for other in others:
        assert plain(model.decide(other)) == plain(first)
    (alone,) = model.decide(CASES[0])
    # Batches of other sizes add up in another order.
    assert alone.alteration.values.item() == pytest.approx(first[0].alteration.values.item(), rel=1e-9)
    assert alone.estimate.point == pytest.approx(first[0].estimate.point, rel=1e-9)
    assert plain(model.decide(CASES, workers=2)) == plain(first)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([{"X1": None, "X2": "high"}], "the cases: 2 faults(?s:.*)X1: 1 of 1(?s:.*)X2: expected num"),
        (pd.DataFrame([[1, 2, 3]], columns=["X1", "X1", "X2"]), "several columns are called 'X1'"),
    ],
)
def test_faults_of_the_cases_are_told(model, cases, words):
    with pytest.raises(TableError, match=words) as caught:
        model.decide(cases)
    assert caught.value.__cause__ is None


def test_it_shows_what_it_is_and_escapes_names(loans):  # noqa: F811
    name = "<b>x</b>"
    parents = {name: ["X1", "X2", "U1"], "Y1": ["X2", "U1", name], "Y2": ["U1", name]}
    task = TASK | {"graph": {"parents": parents}, "box": {name: [0, 1]}}
    made = rt.learn(loans.rename(columns={"A2": name}), task, method="care")
    page = made._repr_html_()
    assert "after setting &lt;b&gt;x&lt;/b&gt;, and recommends" in page
    assert "<b>" not in page
    assert "<td>care</td>" in page
    assert repr(made) == "RehearsalModel(name='care', seed=0)"
