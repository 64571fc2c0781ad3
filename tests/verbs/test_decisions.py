"""Collections of decisions: frames, figures and HTML of what verbs return."""

import pandas as pd
import polars as pl
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import rehearsal_torch as rt
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.verbs.decisions import Decisions
from tests.verbs.test_rehearse import CASES, TASK, plain
from tests.verbs.test_rehearsed import frame  # noqa: F401  the fixture

NO = Decision(None, 0.0, status="no_action")


@pytest.fixture
def found(frame):  # noqa: F811
    cases = pd.DataFrame(CASES, index=["ann", "bob"])
    return rt.rehearse(frame, TASK, cases, method="care")


def test_a_frame_has_the_numbers_of_the_decisions_and_the_index_of_the_cases(found):
    shown = found.to_frame()
    assert list(shown.index) == ["ann", "bob"]
    assert shown["case"].tolist() == ["2", "3"]
    assert shown[["given/X1", "given/X2"]].to_numpy().tolist() == [[0.3, 0.4], [0.6, 0.9]]
    for decision, (_, row) in zip(found, shown.iterrows(), strict=True):
        assert decision.status == "recommended"
        assert row["set/A2"] == decision.alteration.values.item()
        assert (row["estimate"], row["no_action"]) == (decision.estimate.point, decision.baseline.point)
        assert (row["lower"], row["upper"], row["level"]) == (
            decision.estimate.lower, decision.estimate.upper, 0.95,
        )  # fmt: skip
        assert row["warnings"] == "; ".join(decision.warnings)


def test_cases_that_are_no_frame_of_pandas_are_numbered(frame):  # noqa: F811
    for cases in (CASES, pl.DataFrame(CASES)):
        assert list(rt.rehearse(frame, TASK, cases, method="care").to_frame().index) == [0, 1]
    every = rt.rehearse(frame.set_axis(range(100, 180)), TASK, method="care").to_frame()
    assert list(every.index) == list(range(100, 180))


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


def test_a_held_out_score_stands_above_the_table(frame):  # noqa: F811
    found = rt.rehearse(frame, TASK, CASES, method="care", **{"dataset.validation": 0.25})
    assert found.untouched.line() in found._repr_html_()


def test_a_collection_is_the_list_that_it_was(found):
    assert found == list(found)
    assert plain(Decisions(found)) == plain(found)
    numbered = Decisions([NO, NO])
    assert numbered.to_frame()["case"].tolist() == ["1", "2"]
    assert numbered.summary() == "2 cases: no action in 2."


def test_lengths_that_differ_are_refused():
    case = RehearsalCase("a", {"x": torch.tensor(1.0)}, {"dose": (0.0, 1.0)})
    assert list(Decisions([NO], [case]).to_frame().columns)[2] == "set/dose"
    with pytest.raises(ValueError, match="expected one case for each of 2 decisions; got 1"):
        Decisions([NO, NO], [case])
    with pytest.raises(ValueError, match="expected one label for each of 1 decisions; got 2"):
        Decisions([NO], [case], pd.Index([1, 2]))


def test_printed_decisions_say_a_sentence_for_each_case_first(found):
    first, second, last = str(found).splitlines()
    value, claim = found[0].alteration.values.item(), found[0].estimate
    assert first.startswith(f"Case 2: Set A2 to {value:.4g}. The estimated chance of a desired outcome ")
    point, lower, upper = (f"{100 * each:.0f} %" for each in (claim.point, claim.lower, claim.upper))
    assert f"to {point} (95% interval {lower} to {upper})." in first
    assert second.startswith("Case 3: ")
    assert last == found.summary()
    declined = Decision(None, 0.0, status="refused", reason="no row is near")
    many = Decisions([declined] * 12)
    lines = str(many).splitlines()
    assert lines[0].startswith("Case 1: Refused: ")
    assert lines[0].endswith("Why: no row is near.")
    assert lines[10] == "... and 2 more cases: see sentences() and to_frame()"
