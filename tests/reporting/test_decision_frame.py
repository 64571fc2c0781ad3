import math

import pandas as pd

from rehearsal_torch.data.estimate import DIFFERENCE, Estimate
from rehearsal_torch.data.mean_gain import Overall
from rehearsal_torch.reporting.decision_frame import (
    _average_cost,
    beyond,
    cost_cell,
    cost_cells,
    cost_sentence,
    counts_of,
    decision_frame,
    gain_cell,
    in_all,
    priced,
    quantity,
    summary,
    weighed,
)
from rehearsal_torch.reporting.page.sentences import chances

OF = "probability of a desired outcome"
ACTED = {
    "identity": "ann",
    "given": {"age": 40.0},
    "status": "may",
    "alteration": {"dose": 2.0},
    "estimate": {"point": 0.8, "of": OF, "lower": 0.6, "upper": 0.9, "level": 0.95},
    "baseline": {"point": 0.5, "of": OF},
    "findings": [{"kind": "gain", "text": "small"}, {"kind": "graph", "text": "odd"}],
    "reason": None,
}
NONE = {
    "identity": "bob",
    "given": {"age": 60.0},
    "status": "leave",
    "alteration": None,
    "estimate": {"point": 0.3, "of": OF, "lower": 0.1, "upper": 0.4, "level": 0.95},
    "baseline": {"point": 0.4, "of": OF},
    "findings": [],
    "reason": {"kind": "no_gain", "text": "no alteration helps"},
}
REFUSED = NONE | {
    "identity": "eve",
    "status": "leave",
    "reason": {"kind": "no_support", "text": "no support"},
    "baseline": None,
}


def test_a_row_holds_settings_claims_and_context():
    frame = decision_frame([ACTED, NONE, REFUSED], ["dose", "diet"])
    assert list(frame.columns) == [
        "case", "status", "set/dose", "set/diet", "estimate", "lower", "upper", "level", "no_action",
        "warnings", "reason", "findings", "reason_kind", "given/age",
    ]  # fmt: skip
    first = frame.iloc[0].drop("set/diet").to_dict()
    assert first == {
        "case": "ann", "status": "may", "set/dose": 2.0, "estimate": 0.8, "lower": 0.6, "upper": 0.9,
        "level": 0.95, "no_action": 0.5, "warnings": "small; odd", "reason": "",
        "findings": "gain; graph", "reason_kind": "",
        "given/age": 40.0,
    }  # fmt: skip
    assert frame["set/diet"].isna().all()


def test_the_index_is_the_one_asked_for_and_no_decision_is_a_frame_with_columns():
    assert list(decision_frame([ACTED], index=pd.Index(["x"])).index) == ["x"]
    empty = decision_frame([], ["dose"])
    assert (len(empty), "set/dose" in empty.columns) == (0, True)


def test_names_of_variables_hide_no_column():
    odd = ACTED | {"given": {"case": 1.0}, "alteration": {"estimate": 7.0}}
    (row,) = decision_frame([odd]).to_dict("records")
    assert (row["case"], row["given/case"], row["estimate"], row["set/estimate"]) == ("ann", 1.0, 0.8, 7.0)


def test_a_sentence_counts_cases_and_states_the_means():
    lines = [ACTED, NONE, REFUSED]
    assert quantity(lines) == OF
    assert summary(decision_frame(lines), OF) == (
        "3 cases: an alteration is recommended in 1, no action in 1, refused in 1. Where one is recommended, "
        "the estimated chance of a desired outcome is 80 % on average, 50 % with no action."
    )
    assert summary(decision_frame([NONE]), OF) == "1 case: no action in 1."
    assert summary(decision_frame([]), "value") == "0 cases: none."
    assert quantity([]) == "value"
    bare = ACTED | {"baseline": None}
    assert summary(decision_frame([bare]), OF).endswith("is 80 % on average.")


def test_the_means_are_over_the_decisions_within_the_data():
    far = ACTED | {
        "estimate": {"point": 0.99, "of": OF},
        "findings": [
            {"kind": "gain", "text": "small"},
            {"kind": "range", "text": "age is 90; the observations lie between 20 and 80"},
        ],
    }
    frame = decision_frame([ACTED, NONE, far])
    assert frame["estimate"].tolist() == [0.8, 0.4, 0.99], "a table keeps the numbers"
    assert beyond(frame).tolist() == [False, False, True]
    assert "Where one is recommended within the data, the estimated" in summary(frame, OF)
    assert "is 80 % on average" in summary(frame, OF)
    assert summary(frame[1:], OF).endswith("Where one is recommended, it lies outside the data.")


def test_present_values_have_columns_where_there_are_some():
    against = ACTED | {
        "present": {"dose": 1.0},
        "unchanged": {"point": 0.45, "of": OF},
        "gain": {"point": 0.35, "of": "difference", "lower": 0.1, "upper": 0.5, "level": 0.95},
    }
    frame = decision_frame([against, NONE])
    columns = ["present/dose", "unchanged", "gain", "gain_lower", "gain_upper"]
    assert frame[columns].iloc[0].tolist() == [1.0, 0.45, 0.35, 0.1, 0.5]
    assert frame[columns].iloc[1].isna().all()
    assert summary(frame, OF, "y is at most 1").endswith(
        "the estimated chance that y is at most 1 is 80 % on average, 45 % with the present values."
    )


BOUGHT = {
    "identity": "ann",
    "status": "may",
    "given": {"x": 1.0},
    "alteration": {"a": 2.0},
    "estimate": {
        "point": 0.8,
        "of": "probability of a desired outcome",
        "lower": 0.7,
        "upper": 0.9,
        "level": 0.95,
    },
    "baseline": {"point": 0.3, "of": "probability of a desired outcome"},
    "cost": 12.4,
    "worth": 200.0,
    "net_value": {"point": 147.6, "of": "net value", "lower": 127.6, "upper": 167.6, "level": 0.95},
    "net_gain": {"point": 87.6, "of": "net value above", "lower": 67.6, "upper": 107.6, "level": 0.95},
    "findings": [],
    "reason": None,
    "trace": {},
}
LEFT = {
    **BOUGHT,
    "identity": "bo",
    "status": "leave",
    "alteration": None,
    "cost": 0.0,
    "net_value": {"point": 60.0},
}
del LEFT["net_gain"]
TOLD = {key: value for key, value in BOUGHT.items() if key not in ("worth", "net_value", "net_gain")}
FREE = {key: value for key, value in TOLD.items() if key != "cost"}


def test_sentences():
    assert cost_sentence(BOUGHT) == (
        "It costs 12.4 and nets +87.6 [+67.6, +107.6] above changing nothing; the net value is 147.6."
    )
    assert cost_sentence(LEFT) == "It costs nothing; the net value is 60."
    assert cost_sentence(TOLD) == (
        "It costs 12.4, which is not weighed: what a desired outcome is worth is not stated."
    )
    assert cost_sentence(FREE) == ""
    assert chances(BOUGHT)[-1] == cost_sentence(BOUGHT)
    assert len(chances(FREE)) == 1


def test_cells():
    assert (cost_cell(BOUGHT), gain_cell(BOUGHT), gain_cell(LEFT)) == ("12.4", "+87.6 [+67.6, +107.6]", "-")
    assert (priced([FREE]), priced([FREE, TOLD]), weighed([TOLD]), weighed([LEFT])) == (
        False,
        True,
        False,
        True,
    )
    assert cost_cells(BOUGHT)["net_value_lower"] == 127.6
    assert math.isnan(cost_cells(TOLD)["net_gain"])


def test_a_data_frame_has_cost_and_net_value_where_actions_have_costs():
    frame = decision_frame([BOUGHT, LEFT])
    assert frame["cost"].tolist() == [12.4, 0.0]
    assert frame["net_value"].tolist() == [147.6, 60.0]
    assert frame["net_gain_upper"].tolist()[0] == 107.6
    assert "cost" not in decision_frame([FREE])
    assert summary(frame, "probability").endswith(
        "30 % with no action. It costs 12.4 and nets +87.6 on average."
    )
    assert _average_cost(decision_frame([TOLD])) == " It costs 12.4 on average."
    assert _average_cost(decision_frame([FREE])) == ""


def test_what_cannot_be_told_is_counted_apart_from_what_is_left():
    reasons = [None, {"kind": "no_gain", "text": "no"}, {"kind": "no_support", "text": "few"}]
    lines = [
        {
            "status": "leave" if reason else "may",
            "alteration": None if reason else {"a": 1.0},
            "reason": reason,
        }
        for reason in reasons
    ]
    counts = counts_of(lines)
    assert counts == {"may": 1, "leave": 1, "cannot tell": 1}
    whole = Overall(0.5, Estimate(0.1, DIFFERENCE, 0.0, 0.2, 0.95), {"may": 1, "leave": 2}, 0.0, "may")
    assert "(may in 1, leave in 1, cannot tell in 1)" in in_all(whole, counts=counts)
