"""Rehearsing from Python: the numbers of the command line, whatever holds the table, and errors in words."""

import json
import random

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import yaml
from hydra.core.global_hydra import GlobalHydra

import rehearsal_torch as rt
from rehearsal_torch.cli.main import decide, main
from rehearsal_torch.console_command import main as program
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.user_error import RequestError, RequestWarning
from tests.data.problem_file.conftest import table, written  # noqa: F401
from tests.scripts.typing_in import lines

TASK = {
    "graph": {"parents": {"A2": ["X1", "X2", "U1"], "Y1": ["X2", "U1", "A2"], "Y2": ["U1", "A2"]}},
    "context": ["X1", "X2"],
    "box": {"A2": [0, 1]},
    "region": {"Y1": [0.6, None], "Y2": [0.3, None]},
}
CASES = [{"X1": 0.3, "X2": 0.4}, {"X1": 0.6, "X2": 0.9}]
KERNEL = {
    "surrogate.estimator.members": 1,
    "surrogate.estimator.features": 40,
    "surrogate.estimator.direction_rows": 60,
    "surrogate.estimator.width_rows": 60,
}
# Those of the default.
SMALL = {
    "surrogate.members": 2,
    "surrogate.blocks": 4,
    "surrogate.functions": 3,
    "surrogate.frequencies": 40,
    "surrogate.evidence_rows": 60,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    table = Loan(size=SampleSize(rows=80)).observations()
    frame = pd.DataFrame(table.values.numpy(), columns=list(table.names))
    frame.to_csv(tmp_path / "table.csv", index=False)
    pd.DataFrame(CASES).to_csv(tmp_path / "cases.csv", index=False)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plain(decisions):
    return [json.loads(json.dumps(each.to_dict())) for each in decisions]


def commanded(folder, method, settings, seed=0, cases="cases.csv"):
    """What the command writes, without what only a run's lines hold."""
    typed = ["+experiment=own_table", "path=table.csv", "dataset.task=task.yaml"]
    typed += [f"dataset.contexts={cases}", f"decision={method}", f"seed={seed}", "workers=1"]
    out = folder / f"{method}-{seed}"
    assert main(decide, [*typed, *(f"{key}={value}" for key, value in settings.items()), f"out={out}"]) == 0
    beside = ("index", "kind", "identity", "given", "score", "certificate", "draws")
    return [{key: value for key, value in line.items() if key not in beside} for line in lines(out)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings", "seed"), [("outcome_regression", SMALL, 7), ("cme", KERNEL, 7), ("care", {}, 1)]
)
def test_decisions_are_those_of_the_command_to_the_last_bit(folder, method, settings, seed):
    found = rt.rehearse("table.csv", "task.yaml", "cases.csv", method=method, seed=seed, **settings)
    assert plain(found) == commanded(folder, method, settings, seed)


@pytest.mark.bench
def test_claims_from_other_rows_are_those_of_the_command_and_change_no_action(folder):
    own = rt.rehearse("table.csv", "task.yaml", "cases.csv", **SMALL)
    found = rt.rehearse("table.csv", "task.yaml", "cases.csv", claims="cross_fitted", **SMALL)
    assert plain(found) == commanded(folder, "outcome_regression", SMALL | {"claims": "cross_fitted"})
    assert [each.alteration.values.tolist() for each in found] == [
        each.alteration.values.tolist() for each in own
    ]
    for one, other in zip(own, found, strict=True):
        assert other.trace["claimed_in_sample"] == one.estimate.point
        assert other.estimate.point == pytest.approx(one.estimate.point - other.trace["optimism"], abs=2e-6)
        assert other.estimate.lower < other.estimate.point < other.estimate.upper
    assert len((folder / "outcome_regression-0" / "untouched.csv").read_text().splitlines()) == 81
    assert json.loads((folder / "outcome_regression-0" / "claims.json").read_text())["folds"] == 5


@pytest.mark.bench
def test_a_method_that_is_chosen_is_that_of_the_command_and_decides_as_by_name(folder):
    limits = {"choose.repeats": 2, "choose.cases": 2}
    found = rt.rehearse("table.csv", "task.yaml", "cases.csv", method="auto", **limits)
    assert plain(found) == commanded(folder, "auto", limits)
    choice = found.model.choice
    record = json.loads((folder / "auto-0" / "method_choice.json").read_text())
    assert (record["chosen"], record["bias"]) == (choice.chosen, choice.bias)
    assert [each.trace["method"] for each in found] == [choice.chosen] * 2
    assert record["sentences"][0].startswith(found[0].trace["method_choice"])
    assert found[0].trace["method_choice"].rstrip(".") in found._repr_html_()
    named = rt.rehearse("table.csv", "task.yaml", "cases.csv", method=choice.chosen)
    assert [each.estimate for each in named] == [each.estimate for each in found]
    model = rt.learn("table.csv", "task.yaml", method="auto", **limits)
    assert model.choice.standing("care").value == choice.standing("care").value
    assert model.name == choice.chosen
    assert model.card["method_choice"][0].startswith(f"auto took {choice.chosen}")


@pytest.mark.slow
def test_what_holds_table_task_and_cases_makes_no_difference(folder):
    frame = pd.read_csv("table.csv")
    table = rt.Table.observed(tuple(frame.columns), torch.from_numpy(frame.to_numpy().copy()))
    first = plain(rt.rehearse("table.csv", "task.yaml", "cases.csv", **SMALL))
    # Rows of another frame, filtered, say, have an index of their own.
    labelled = frame.set_axis(range(500, 580))
    assert plain(rt.rehearse(labelled, TASK, CASES, **SMALL)) == first
    task = rt.RehearsalTask.of(TASK)
    assert plain(rt.rehearse(table, task, pd.DataFrame(CASES, index=["ann", "bob"]), **SMALL)) == first
    (alone,) = plain(rt.rehearse(frame, folder / "task.yaml", CASES[0], **SMALL))
    # How many steps were taken is said of all cases that were decided together; processors add up batches of
    # other sizes in another order.
    assert alone["alteration"] == pytest.approx(first[0]["alteration"], rel=1e-9)
    assert alone["value"] == pytest.approx(first[0]["value"], rel=1e-9)
    beside = {"trace": {}, "alteration": {}, "value": 0.0}
    assert {**alone, **beside} == {**first[0], **beside}
    assert list(labelled.index) == list(range(500, 580))


@pytest.mark.bench
def test_without_cases_every_row_is_one(folder):
    found = rt.rehearse("table.csv", TASK, method="care")
    assert len(found) == 80
    # What was done in a row of the table is no present value of a case.
    pd.read_csv("table.csv")[["X1", "X2"]].to_csv("contexts.csv", index=False)
    assert plain(found) == commanded(folder, "care", {}, cases="contexts.csv")


@pytest.mark.slow
def test_frames_of_other_libraries_are_read_and_refused_as_those_of_pandas(folder):
    frame = pd.read_csv("table.csv")
    other = pl.read_csv("table.csv")
    found = rt.rehearse(other, TASK, pl.DataFrame(CASES), method="care")
    assert plain(found) == plain(rt.rehearse(frame, TASK, CASES, method="care"))
    gap = other.with_columns(pl.Series("U1", [None, *other["U1"][1:]]))
    with pytest.raises(ValueError, match=r"the table: (?s:.*)U1: 1 of 80 values are missing or infinite in"):
        rt.rehearse(gap, TASK, CASES, method="care")
    with pytest.raises(ValueError, match="expected a data frame in memory; got a lazy LazyFrame"):
        rt.rehearse(other.lazy(), TASK, CASES, method="care")
    with pytest.raises(ValueError, match="cases: expected at least one row; got none"):
        rt.rehearse(other, TASK, pl.DataFrame(CASES).head(0), method="care")


def test_nothing_global_is_changed(folder):
    threads = torch.get_num_threads()
    random.seed(3)
    torch.manual_seed(3)
    expected = random.random(), torch.rand(1)
    random.seed(3)
    torch.manual_seed(3)
    state = np.random.get_state()[1].copy()  # noqa: NPY002  the global state is what is looked at
    rt.rehearse("table.csv", TASK, CASES, method="none", seed=5)
    assert (random.random(), torch.rand(1)) == expected
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert not GlobalHydra.instance().is_initialized()
    assert not list(folder.glob("runs"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"claims": "honest"}, "claims: expected 'in_sample' or 'cross_fitted'; got 'honest'"),
        ({"checkpoint": "run"}, "'checkpoint' cannot be set here: expected settings of surrogate, objective"),
        ({"surrogate.members": -1}, "surrogate: members: expected a whole number from 1 to 100"),
    ],
)
def test_errors_are_sentences_without_what_libraries_said(folder, changed, words):
    with pytest.raises(ValueError, match=words) as caught:
        rt.rehearse(**({"table": "table.csv", "task": TASK, "cases": CASES} | changed))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert type(caught.value).__module__.startswith("rehearsal_torch")


@pytest.mark.slow
def test_a_region_without_rows_is_warned_of_once_before_the_fit(folder, monkeypatch):
    far = TASK | {"region": {"Y1": [60, None], "Y2": [0.3, None]}}
    with pytest.warns(
        RequestWarning, match="none of the 80 rows lies in the desired region: Y1 is at"
    ) as told:
        found = rt.rehearse("table.csv", far, CASES, method="cme", **KERNEL)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert {each.reason.kind for each in found} == {"no_gain"}
    monkeypatch.setattr("rehearsal_torch.api.rehearse.learnt", lambda *_: pytest.fail("fitted"))
    with pytest.raises(RequestWarning, match="and the region asks for at least 60"):
        rt.rehearse("table.csv", far, CASES, method="cme", **KERNEL)


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
def test_imputed_tables_are_decided_by_as_on_the_command_line(written, tmp_path):  # noqa: F811
    file = written(missing={"impute": 2}, cases=[{"x": 0.1}, {"x": 1.0}])
    rows = table()
    rows.loc[rows["x"] > 0.8, "y"] = None
    rows.to_csv(tmp_path / "table.csv", index=False)
    typed = [str(file), "+experiment=own_problem", "decision=care", f"out={tmp_path / 'run'}", "workers=1"]
    assert program(["decide", *typed]) == 0
    told = [json.loads(line) for line in (tmp_path / "run" / "decisions.jsonl").read_text().splitlines()]
    made = rt.rehearse(file, method="care")
    for end in ("point", "lower", "upper"):
        assert [getattr(each.estimate, end) for each in made] == [each["estimate"][end] for each in told]
    assert {each.trace["imputation"]["imputations"] for each in made} == {2}
    model = rt.learn(file, method="care")
    again = model.decide([{"x": 0.1}, {"x": 1.0}])
    assert [each.estimate for each in again] == [each.estimate for each in made]
    with pytest.raises(RequestError, match="folds of imputed tables have seen each other's rows"):
        rt.rehearse(file, method="care", claims="cross_fitted")


def test_what_check_says_of_the_data_is_beside_the_decisions_and_in_the_saved_model(tmp_path):
    from tests.toys import priced

    table = priced.rows(300)
    table.loc[table.index[:40], "a"] = -999.0
    found = rt.rehearse(table, priced.TASK, priced.CASES, method="care")
    (value,) = (each for each in found.findings if each.kind == "values")
    assert "-999" in value.text
    assert f"Of the data: {value.text}." in str(found)
    found.model.save(tmp_path / "model")
    assert rt.load(tmp_path / "model").findings == found.findings
