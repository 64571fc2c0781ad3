"""Explanations in words, as a frame and as HTML."""

import math
from dataclasses import replace

import pytest
import torch

from rehearsal_torch.api.explanation import COLUMNS, Adjusted, Explanation, NearRows, RunnerUp, WithoutEdge
from rehearsal_torch.data.decision import CHANCE, DIFFERENCE, Decision, Estimate, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.sensitivity import Sensitivity
from rehearsal_torch.spaces.box import Alteration

DECISION = Decision(
    Alteration(("a",), torch.tensor([0.5], dtype=torch.float64)),
    0.8,
    estimate=Estimate(0.8, CHANCE, 0.7, 0.9, 0.95),
    baseline=Estimate(0.4, CHANCE),
    findings=(Finding("claim", "x is 9"),),
    sensitivity=Sensitivity(1.5, "interval", 2.0, "u"),
)
ADJUSTED = Adjusted(("a",), ("x",), ("<u>",), (), (), True)
NEAR = NearRows(20, 400, 0.75, {"x": (0.0, 1.0), "a": (0.25, 0.75)}, 15, 33.3)
EDGES = (
    WithoutEdge(("a", "y"), "falls", 0.0, "no directed path leads from a to y then"),
    WithoutEdge(("x", "a"), "stands", 0.4, "the fit does not change"),
    WithoutEdge(("u", "a"), "stands", 0.4, "the fit does not change"),
    WithoutEdge(("u", "y"), "unknown", None, "more than 0 fits are needed"),
)
WHOLE = Explanation(
    RehearsalCase("1", {"x": torch.tensor(0.3)}, {"a": (0.0, 1.0)}),
    DECISION,
    {"a": 0.5},
    (ADJUSTED, Adjusted(("b",), ("x",), (), (), (), True)),
    NEAR,
    (RunnerUp({"b": 1.0}, "set", Estimate(0.75, CHANCE), Estimate(0.05, DIFFERENCE)),),
    EDGES,
    ("A note.",),
)


def test_outside_the_data_no_number_of_the_decision_is_said():
    findings = (Finding("support", "few rows are like this"), Finding("claim", "x is 9"))
    one = replace(WHOLE, decision=replace(DECISION, findings=findings))
    said = one.sentences()
    assert said[0] == one.sentence() == "Recommended: a=0.5; outside the data: few rows are like this."
    assert said[5:8] == [
        "Best of the other candidate sets: b=1; not compared, as the decision lies outside the data.",
        "Without a -> y it no longer stands: no directed path leads from a to y then.",
        "It stands without any one of x -> a, u -> a.",
    ]
    assert said[-2:] == ["X is 9.", "A note."]
    assert not any("80 %" in text or "common cause would" in text for text in said)
    assert "+0.400" not in one._repr_html_()
    frame = one.to_frame()
    assert frame["says"][0] == said[0]
    assert frame["number"][0] == 0.8
    none = replace(one, decision=replace(one.decision, alteration=None, reason=Finding("no_gain", "no gain")))
    assert none.sentence().endswith(
        "no gain; the best action found was a=0.5. Outside the data: few rows are like this."
    )


def test_the_frame_has_a_row_for_each_fact():
    frame = WHOLE.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame["part"].value_counts().to_dict() == {
        "edge": 4,
        "adjustment": 2,
        "region": 2,
        "decision": 1,
        "rows": 1,
        "runner-up": 1,
        "hidden cause": 1,
    }
    edges = frame[frame["part"] == "edge"]
    assert edges["number"].tolist()[:3] == [0.0, 0.4, 0.4]
    assert math.isnan(edges["number"].iloc[3])
    other = WHOLE.to_frame("polars")
    assert other["part"].to_list() == frame["part"].tolist()
    assert other["number"].null_count() == frame["number"].isna().sum()
    (decision,) = frame[frame["part"] == "decision"].to_dict("records")
    assert (decision["number"], decision["lower"], decision["upper"]) == (0.8, 0.7, 0.9)
    (hidden,) = frame[frame["part"] == "hidden cause"].to_dict("records")
    assert hidden["number"] == 1.5


def test_html_holds_a_table_of_edges_and_escapes_names():
    html = WHOLE._repr_html_()
    assert html.startswith("<div><p><strong>Recommended: a=0.5;")
    assert "x, &lt;u&gt;" in html
    assert "<u>" not in html
    assert html.count("<tr>") == 1 + 4
    assert "<td>a -&gt; y</td><td>falls</td><td>+0.000</td>" in html


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            Adjusted(("a",), (), (), (), ("a and y have a common cause",), True),
            "Setting a is adjusted for nothing, which does not suffice: a and y have a common cause.",
        ),
        (
            Adjusted(("a", "b"), ("x",), (), ("v",), (), False),
            "The method fits every equation of the graph; for setting a, b it would suffice to adjust for x, "
            "v (context x; between the actions v); by the graph, no common cause of action and outcome is "
            "left.",
        ),
    ],
)
def test_adjustments_say_whether_they_suffice_and_enter_the_fit(one, said):
    assert one.sentence() == said


def test_a_runner_up_without_estimate_or_support_says_so():
    found = RunnerUp({"a": 0.7}, "action", None, None, "no support").sentence()
    assert found.endswith(
        "a=0.7; the method has no estimate of the difference. It would not be recommended: no support."
    )


def test_no_near_row_has_no_region():
    assert NearRows(0, 50, 0.1, {}, 0).sentences() == [
        "0 of 50 rows (0.0%) lie near this action in this context (within 0.10 standard deviations)."
    ]
