"""The rows of a fit, which a saved model is given again."""

import warnings

import pytest

import rehearsal_torch as rt
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.user_error import RequestWarning
from tests.api.test_explain_decision import CASE, ROWS, changed, learnt, of_one_set


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    model = of_one_set()
    return model, rt.load(model.save(tmp_path_factory.mktemp("saved") / "model"))


def test_a_loaded_model_explains_what_it_can_without_the_rows(both):
    model, loaded = both
    own, found = model.explain(CASE), loaded.explain(CASE)
    assert found.decision.to_dict() == own.decision.to_dict()
    assert (found.rows.count, found.rows.desired) == (own.rows.count, None)
    assert found.rows.region["x"] == pytest.approx(own.rows.region["x"])
    assert found.runners_up == own.runners_up
    assert [each.verdict for each in found.edges] == ["unknown", "falls", "unknown", "falls"]
    assert any("explain(case, table=...)" in each for each in found.sentences())
    assert list(loaded.explain(CASE, rows=True).rows.contents.columns) == ["x", "a", "m", "distance"]


@pytest.mark.slow
def test_with_the_rows_it_explains_all_that_the_first_did(both):
    model, loaded = both
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = loaded.explain(CASE, table=ROWS.to_frame())
    own = model.explain(CASE)
    assert found.edges == own.edges
    assert found.rows == own.rows
    assert found.sentences() == own.sentences()


@pytest.mark.slow
def test_held_out_rows_stay_held_out(tmp_path):
    model = learnt(changed(candidates=[["a"]]), **{"dataset.validation": 0.2})
    loaded = rt.load(model.save(tmp_path / "model"))
    found = loaded.explain(CASE, table=ROWS.to_frame())
    assert found.rows.compared == 120
    assert found.edges == model.explain(CASE).edges


def test_other_rows_are_told_apart_by_their_fingerprint(both):
    other = ROWS.to_frame() * 1.5
    with pytest.warns(RequestWarning, match="table: the model was fitted to other rows than these 150"):
        both[1].explain(CASE, table=other, refits=0)


def test_rows_that_cannot_be_read_are_refused(both):
    with pytest.raises(TableError, match="no column 'm'"):
        both[1].explain(CASE, table=ROWS.to_frame().drop(columns="m"))
