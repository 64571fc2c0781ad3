"""A choice in words."""

from dataclasses import replace

from rehearsal_torch.methods.method_choice import (
    MEANING,
    NET_MEANING,
    Standing,
    chosen,
    gained,
    rows,
    sentence,
    sentences,
)
from tests.methods.test_method_choice import NOTHING, ROWS, found, taken

BEST, NEAR = [0.60, 0.64, 0.62, 0.62], [0.61, 0.61, 0.62, 0.60]


def test_a_simpler_method_is_told_with_the_best_and_the_error():
    assert sentence(taken({"care": NEAR, "outcome_regression": BEST}, NOTHING)) == (
        "auto took care: its value 61.0 % lies within one standard error (2.0 percentage points) of the "
        "best, outcome_regression 62.0 %, and it is simpler (doing nothing 30.0 %)"
    )


def test_that_nothing_helps_is_told():
    assert sentence(taken({"care": [0.2] * 4}, NOTHING)) == (
        "auto took none: no method's decisions are worth more than doing nothing (30.0 %)"
    )
    told = sentence(taken({"care": [0.5, 0.2, 0.4, 0.2]}, NOTHING))
    assert told.startswith(
        "auto took none: the value of doing nothing, 30.0 %, lies within one standard error"
    )
    assert told.endswith("of the best, care 32.5 %, so that no method is told apart from doing nothing")


def test_all_that_was_left_out_is_told_with_its_reason():
    others = [Standing("qwz23_offline", False, False, "a bow"), Standing("micns", True, False, "costs")]
    given = found({"care": NEAR, "outcome_regression": BEST}, NOTHING)
    told = sentences(chosen(given, 900, others))
    assert told[1] == "Over doing nothing, care gains +31.0 percentage points (95% interval +26.0 to +36.0)."
    assert told[2] == (
        f"3 methods were compared on {ROWS} of 900 rows, in 4 halves with 10 cases each. Choosing among them "
        "makes the value of care about 1.3 percentage points too large."
    )
    assert told[3:] == [
        "qwz23_offline does not apply: a bow.",
        "Not compared, for the reasons in the table of the choice: micns.",
        MEANING,
    ]


def test_net_values_are_told_as_such():
    priced = chosen(replace(found({"care": NEAR, "cme": BEST}, NOTHING), worth=100.0), ROWS)
    assert sentence(priced) == (
        "auto took care: its net value 61 lies within one standard error (2.041) of the best, cme 62, and it "
        "is simpler (doing nothing 30)"
    )
    assert gained(priced) == "Over doing nothing, care gains +31 (95% interval +25.97 to +36.03)."
    assert sentences(priced)[-1] == NET_MEANING


def test_a_gain_that_is_not_told_from_zero_is_told_as_such():
    told = gained(taken({"care": [0.5, 0.2, 0.4, 0.2]}, NOTHING))
    assert told.startswith("Over doing nothing, care gains +2.5 percentage points (95% interval -")
    assert told.endswith(", so that it is not told from zero.")
    assert gained(taken({"care": [0.2] * 4}, NOTHING)) == ""


def test_the_table_has_a_row_for_each_method():
    others = [Standing("micns", True, False, "costs")]
    first, second, third = rows(chosen(found({"care": NEAR}, NOTHING), ROWS, others))
    assert (first["method"], first["value"], first["brier"], first["chosen"]) == ("none", "0.3", "", "no")
    assert (second["method"], second["value"], second["chosen"]) == ("care", "0.61", "yes")
    assert (third["compared"], third["value"], third["reason"]) == ("no", "", "costs")
