"""What would overturn a recommendation: its record, and its words."""

import json
import math
from dataclasses import replace

import pytest

from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity, factor, share
from rehearsal_torch.round_record import nulls_for_nan

KNOWN = Sensitivity(1.43, "interval", 1.7, "age")


@pytest.mark.parametrize(
    "each",
    [
        KNOWN,
        Sensitivity(math.inf, "point", math.inf, "age"),
        Sensitivity(1.0, "certificate", note="no recorded variable"),
        Sensitivity(1.2, "interval", against="the present values"),
    ],
)
def test_its_record_can_be_read_again(each):
    assert Sensitivity.of(json.loads(json.dumps(nulls_for_nan(each.to_dict())))) == each


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (
            KNOWN,
            "a hidden common cause would have to make this action 1.43 times as likely, or as unlikely, to "
            "overturn this; the strongest recorded variable, age, makes the action 1.70 times as likely, or "
            "as unlikely",
        ),
        (
            Sensitivity(math.inf, "interval", math.inf, "age"),
            "no hidden common cause of the action and the outcome can overturn this; the strongest recorded "
            "variable, age, determines the action",
        ),
        (
            Sensitivity(12.34, "point", note="there is none"),
            "a hidden common cause would have to make this action 12 times as likely, or as unlikely, to "
            "overturn this (by the estimate alone: the method has no interval); there is none",
        ),
        (
            Sensitivity(1.0, "certificate"),
            "even without a hidden common cause, this may be no better than no action: the interval of "
            "the estimate contains what no action gives",
        ),
        (
            Sensitivity(1.0, "interval", against="the present values"),
            "even without a hidden common cause, this may be no better than the present values: the interval "
            "of the estimate contains what the present values give",
        ),
    ],
)
def test_its_sentence(each, text):
    assert each.sentence() == text


def test_a_strength_has_as_many_digits_as_it_needs():
    assert [factor(each) for each in (1.0, 9.994, 9.996, 4321.0, 1e5, math.inf)] == [
        "1.00",
        "9.99",
        "10",
        "4,321",
        "over 10,000",
        "unlimited",
    ]


FOUND = HiddenCause(0.02, "MeanBP", 0.004, "GCS", 0.4)


def test_plain_data_and_back():
    parts = {"action[3]": 0.2}
    for each in (FOUND, HiddenCause(1.0), replace(FOUND, parts=parts), HiddenCause(0.5, parts=parts)):
        assert HiddenCause.of(json.loads(json.dumps(each.to_dict()))) == each
    assert HiddenCause(0.5).to_dict() == {"tipping": 0.5}
    assert HiddenCause(0.5, parts=parts).to_dict() == {"tipping": 0.5, "parts": parts}


def test_the_yardstick_has_the_bias_of_the_covariate():
    rho = FOUND.yardstick
    assert rho is not None
    assert rho**2 / (1 - rho) == pytest.approx(0.4 * 0.004 / 0.996)
    assert HiddenCause(0.1, "x", 0.3, "y", 0.3).yardstick == pytest.approx(0.3)
    assert HiddenCause(0.1, "x", 1.0, "y", 0.3).yardstick == 1
    assert HiddenCause(0.1).yardstick is None


def test_sentences():
    assert FOUND.sentence() == (
        "a hidden common cause that explains 2.0% of what the recorded variables leave open, of the doses "
        "and of every next state, can overturn this; the strongest recorded variable, MeanBP, which "
        "explains 0.4% of the doses and 40.0% of GCS, is as strong as one with 3.9% of both"
    )
    assert HiddenCause(1.0).sentence().startswith("no hidden common cause")
    assert share(0.0004) == "less than 0.1%"
