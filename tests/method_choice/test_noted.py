"""Decisions say that their method was chosen."""

from dataclasses import replace

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.method_choice.noted import Noted


def test_the_trace_has_the_method_and_why_after_other_claims():
    made = [Decision(None, 0.0, status="no_action", reason="none helps", trace={"nodes": 3})]
    (alone,) = Noted("care", "it is simple")([], made)
    assert alone.trace == {"nodes": 3, "method": "care", "method_choice": "it is simple"}
    (both,) = Noted("care", "", lambda cases, given: [replace(each, value=1.0) for each in given])([], made)
    assert (both.value, both.trace["method"], made[0].trace) == (1.0, "care", {"nodes": 3})


def test_where_no_method_was_taken_that_is_the_reason():
    made = [Decision(None, 0.0, status="no_action", reason="this method never acts", trace={})]
    (one,) = Noted("none", "auto took none: ...")([], made)
    assert one.reason == "no method was taken, as none is told apart from doing nothing"
