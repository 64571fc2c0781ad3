"""What would overturn a recommendation: its record, and its words."""

import json
import math

import pytest

from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity, share
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


FOUND = HiddenCause(0.02, "MeanBP", 0.004, "GCS", 0.4)


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
