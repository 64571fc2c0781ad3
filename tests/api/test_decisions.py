"""Collections of decisions: frames, figures and HTML of what verbs return."""

from dataclasses import fields

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import rehearsal_torch as rt
from rehearsal_torch.api.decisions import CaseDecision, Decisions
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.spaces.box import Alteration
from tests.api.test_rehearse import CASES, TASK, plain
from tests.api.test_rehearsed import frame  # noqa: F401  the fixture

NO = Decision(None, 0.0)


@pytest.fixture(scope="module")
def found(frame):  # noqa: F811
    cases = pd.DataFrame(CASES, index=["ann", "bob"])
    return rt.rehearse(frame, TASK, cases, method="care")


def test_a_frame_has_the_numbers_of_the_decisions_and_the_index_of_the_cases(found):
    shown = found.to_frame()
    assert list(shown.index) == ["ann", "bob"]
    assert shown["case"].tolist() == ["ann", "bob"]
    assert shown[["given/X1", "given/X2"]].to_numpy().tolist() == [[0.3, 0.4], [0.6, 0.9]]
    for decision, (_, row) in zip(found, shown.iterrows(), strict=True):
        assert decision.alteration is not None
        assert row["set/A2"] == decision.alteration.values.item()
        assert (row["estimate"], row["no_action"]) == (decision.estimate.point, decision.baseline.point)
        assert (row["lower"], row["upper"], row["level"]) == (
            decision.estimate.lower, decision.estimate.upper, 0.95,
        )  # fmt: skip
        assert row["warnings"] == "; ".join(decision.warnings)


def test_plots_are_axes_new_or_given(found):
    axes = found.plot()
    assert isinstance(axes, Axes)
    assert pyplot.gcf() is axes.figure
    pyplot.close(axes.figure)
    own = Figure().subplots()
    assert found.plot(own) is own
    claims = next(each for each in own.lines if each.get_label() == "after the alteration")
    assert claims.get_ydata().tolist() == [each.estimate.point for each in found]


def test_html_escapes_names_of_columns(frame):  # noqa: F811
    name = "<b>x</b>"
    task = {
        "graph": {"parents": {name: ["X1", "X2", "U1"], "Y1": ["X2", "U1", name], "Y2": ["U1", name]}},
        "context": ["X1", "X2"],
        "box": {name: [0, 1]},
        "region": TASK["region"],
    }
    found = rt.rehearse(frame.rename(columns={"A2": name}), task, CASES, method="care")
    page = found._repr_html_()
    assert "<b>" not in page
    assert "<th>&lt;b&gt;x&lt;/b&gt;</th>" in page
    assert "2 cases: an alteration is recommended in 2" in page


def test_a_collection_is_the_list_that_it_was(found):
    assert found == list(found)
    assert plain(Decisions(found)) == plain(found)
    numbered = Decisions([NO, NO])
    assert numbered.to_frame()["case"].tolist() == ["1", "2"]
    assert numbered.summary() == "2 cases: no action in 2."


def test_printed_decisions_say_a_sentence_for_each_case_first(found):
    first, second, last, *of_data = str(found).splitlines()
    value, claim = found[0].alteration.values.item(), found[0].estimate
    assert first.startswith(
        f"Case ann: May help: set A2 to {value:.4g}. The estimated chance of a desired outcome "
    )
    point, lower, upper = (f"{100 * each:.0f} %" for each in (claim.point, claim.lower, claim.upper))
    assert f"to {point} (95% interval {lower} to {upper})." in first
    assert second.startswith("Case bob: ")
    assert last == found.summary()
    assert all(line.startswith("Of the data: ") for line in of_data)
    declined = Decision(None, 0.0, reason=Finding("invalid", "no row is near"))
    many = Decisions([declined] * 12)
    lines = str(many).splitlines()
    assert lines[0].startswith("Case 1: Refused: ")
    assert lines[0].endswith("Why: no row is near.")
    assert lines[10] == "... and 2 more cases: see sentences() and to_frame()"


@pytest.mark.slow
@pytest.mark.parametrize("native", [pl.DataFrame, lambda rows: pa.Table.from_pylist(rows)])
def test_frames_are_those_of_the_library_that_came_in(frame, native):  # noqa: F811
    cases = native(CASES)
    model = rt.learn(frame, TASK, method="care")
    for found in (model.decide(cases), rt.rehearse(frame, TASK, cases, method="care")):
        shown = found.to_frame()
        assert type(shown) is type(cases)
        wanted = found.to_frame("pandas")
        assert isinstance(wanted, pd.DataFrame)
        columns = shown.to_dict(as_series=False) if isinstance(shown, pl.DataFrame) else shown.to_pydict()
        assert list(columns) == list(wanted.columns)
        assert columns["set/A2"] == wanted["set/A2"].tolist()
        assert columns["case"] == ["1", "2"]
        assert type(found[0].to_frame()) is type(cases)
    every = rt.rehearse(native(frame.to_dict("records")), TASK, CASES, method="care")
    assert type(every.to_frame()) is type(cases)
    assert isinstance(every.to_frame(library="polars"), pl.DataFrame)
    with pytest.raises(ValueError, match="library: expected pandas, polars, pyarrow or None; got 'arrow'"):
        every.to_frame("arrow")


def test_one_of_several_decisions_has_the_displays_of_the_list(found):
    for place, one in enumerate(found):
        assert one.sentence() == found.sentences()[place]
        assert str(one) == "\n".join([one.sentence(), *one.warnings])
        pd.testing.assert_frame_equal(one.to_frame(), found.to_frame().iloc[[place]])
        assert one.sentence().partition(": ")[2] in one._repr_html_().replace("&#x27;", "'")
        own = Figure().subplots()
        assert one.plot(own) is own
        assert [each.get_text() for each in own.get_xticklabels()] == [["ann", "bob"][place]]
    assert found[0] == Decision(**{each.name: getattr(found[0], each.name) for each in fields(Decision)})
    assert found[0] != found[1]
    assert Decisions(found[1:])[0].sentence().startswith("Case bob: ")
    assert Decisions([NO, NO])[1].to_frame()["case"].tolist() == ["2"]


@pytest.mark.slow
def test_cases_are_called_as_in_the_frame_else_by_number(frame):  # noqa: F811
    model, rows = rt.learn(frame, TASK, method="care"), pd.DataFrame(CASES)
    for cases, names in (
        (rows, ["1", "2"]),
        (CASES, ["1", "2"]),
        (rows.set_axis([402, 7]), ["402", "7"]),
        (rows.set_axis(range(10, 12)), ["10", "11"]),
        (rows.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])), ["a, 1", "a, 2"]),
        (rows.set_axis(["twice", "twice"]), ["1", "2"]),
    ):
        decided = model.decide(cases), rt.rehearse(frame, TASK, cases, method="care")
        assert [each.to_frame()["case"].tolist() for each in decided] == [names, names]


def test_cases_of_a_file_are_called_by_their_lines(care, tmp_path):
    pd.DataFrame(CASES).to_csv(tmp_path / "cases.csv", index=False)
    found = care.decide(tmp_path / "cases.csv")
    assert found.to_frame()["case"].tolist() == ["2", "3"]


def test_outside_the_data_a_sentence_has_the_reason_in_place_of_the_chances(care):
    inside, outside = care.decide([CASES[0], {name: 40.0 for name in CASES[0]}])
    assert "The estimated chance" in inside.sentence()
    said = outside.sentence()
    assert "Outside the data: " in said
    assert "the observations lie between" in said
    assert "%" not in said
    assert outside.estimate is None or outside.to_frame("pandas")["estimate"].notna().all()


NOTHING = Decision(None, 0.0, reason=Finding("no_gain", "nothing is better"))


def test_it_is_the_decision_with_a_name():
    (one,) = Decisions([NOTHING])
    assert isinstance(one, CaseDecision)
    assert one == NOTHING
    assert one != "nothing"
    assert one.sentence() == Decisions([NOTHING]).sentences()[0]
    assert str(one).splitlines()[0] == one.sentence()
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_equal_decisions_may_have_taken_different_times():
    made = [
        Decision(Alteration(("a",), torch.tensor([value])), 0.5, seconds=seconds)
        for value, seconds in ((1.0, 0.1), (1.0, 0.2), (2.0, 0.1))
    ]
    one, again, other = Decisions(made)
    assert one == again == made[0]
    assert one != other
    assert made[0] != made[2]


def test_its_sentence_has_units():
    (one,) = Decisions(
        [Decision(Alteration(("rate",), torch.tensor([5.4])), 0.5)], wanted="", units={"rate": "%"}
    )
    assert one.units == {"rate": "%"}
    assert one.sentence().startswith("Case 1: May help: set rate to 5.4 %.")


def test_its_frame_is_the_row_of_the_list():
    one, other = Decisions([NOTHING, NOTHING])
    assert [each.to_frame()["case"].item() for each in (one, other)] == ["1", "2"]
    assert one.to_frame("polars").shape[0] == 1
    assert "nothing is better" in one._repr_html_()
