"""Costs and net values in tables and sentences."""

import math

from rehearsal_torch.reporting.cost_words import (
    average,
    cells,
    cost_cell,
    gain_cell,
    priced,
    sentence,
    weighed,
)
from rehearsal_torch.reporting.decision_frame import decision_frame, summary
from rehearsal_torch.reporting.page.probability_sentences import chances

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
    assert sentence(BOUGHT) == (
        "It costs 12.4 and nets +87.6 [+67.6, +107.6] above changing nothing; the net value is 147.6."
    )
    assert sentence(LEFT) == "It costs nothing; the net value is 60."
    assert sentence(TOLD) == (
        "It costs 12.4, which is not weighed: what a desired outcome is worth is not stated."
    )
    assert sentence(FREE) == ""
    assert chances(BOUGHT)[-1] == sentence(BOUGHT)
    assert len(chances(FREE)) == 1


def test_cells():
    assert (cost_cell(BOUGHT), gain_cell(BOUGHT), gain_cell(LEFT)) == ("12.4", "+87.6 [+67.6, +107.6]", "-")
    assert (priced([FREE]), priced([FREE, TOLD]), weighed([TOLD]), weighed([LEFT])) == (
        False,
        True,
        False,
        True,
    )
    assert cells(BOUGHT)["net_value_lower"] == 127.6
    assert math.isnan(cells(TOLD)["net_gain"])


def test_a_data_frame_has_cost_and_net_value_where_actions_have_costs():
    frame = decision_frame([BOUGHT, LEFT])
    assert frame["cost"].tolist() == [12.4, 0.0]
    assert frame["net_value"].tolist() == [147.6, 60.0]
    assert frame["net_gain_upper"].tolist()[0] == 107.6
    assert "cost" not in decision_frame([FREE])
    assert summary(frame, "probability").endswith(
        "30 % with no action. It costs 12.4 and nets +87.6 on average."
    )
    assert average(decision_frame([TOLD])) == " It costs 12.4 on average."
    assert average(decision_frame([FREE])) == ""
