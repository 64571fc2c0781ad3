"""Curves are claims point by point, bins hide single rows, and densities integrate to one."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.explorer.charts import curves, densities
from rehearsal_torch.explorer.rehearsal_session import _withheld
from rehearsal_torch.verbs.new_cases import NewCases
from rehearsal_torch.verbs.what_if import what_if
from tests.toys.explored import rows, small_model


@pytest.fixture(scope="module")
def case():
    return NewCases(small_model().task, torch.tensor([[0.1]], dtype=torch.float64), ["1"]).case(0)


def test_a_curve_is_the_claim_at_every_place(case):
    one, other = curves(small_model(), case, {"a": 0.3, "m": 1.0}, _withheld)
    assert (one["name"], other["name"]) == ("a", "m")
    assert (one["at"][0], one["at"][-1], len(one["at"])) == (-4.0, 4.0, 33)
    assert (other["at"], other["levels"]) == ([-1.0, 0.0, 1.0], True)
    claim = what_if(small_model(), case, {"a": one["at"][20], "m": 1.0}).estimate
    assert (one["point"][20], one["lower"][20], one["upper"][20]) == pytest.approx(
        (claim.point, claim.lower, claim.upper), abs=1e-9
    )


def test_a_curve_has_no_number_outside_the_data(case):
    (one,) = curves(small_model(), case, {"a": 0.0}, _withheld)
    values = torch.tensor(rows()["a"].to_numpy())
    for place, at in enumerate(one["at"]):
        if not float(values.min()) <= at <= float(values.max()):
            assert one["point"][place] is one["lower"][place] is one["upper"][place] is None
        if abs(at) < 1:
            assert 0 <= one["lower"][place] <= one["point"][place] <= one["upper"][place] <= 1
    assert one["point"][0] is one["point"][-1] is None


def test_outcomes_stand_beside_the_region(case):
    found = densities(small_model(), case, {"m": 1.0}, before=True)
    (one,) = found["coordinates"]
    region = small_model().task.region
    assert (one["label"], found["weight"]) == ("y", 1.0)
    assert (one["lower"], one["upper"]) == pytest.approx((1.0, 2.0)), region
    width = one["edges"][1] - one["edges"][0]
    for heights in (one["after"], one["before"]):
        assert sum(heights) * width == pytest.approx(1.0, abs=0.02)
    inside = [
        height * width
        for height, edge in zip(one["after"], one["edges"], strict=False)
        if 1.0 <= edge + width / 2 <= 2.0
    ]
    assert sum(inside) == pytest.approx(found["share"], abs=0.05)
    claim = what_if(small_model(), case, {"m": 1.0})
    assert found["share"] == pytest.approx(claim.estimate.point, abs=0.02)
    assert found["share_before"] == pytest.approx(claim.baseline.point, abs=0.02)


def test_no_action_may_be_left_out_and_outcomes_may_be_unknown(case, monkeypatch):
    found = densities(small_model(), case, {"m": 1.0}, before=False)
    assert found["share_before"] is None
    assert found["coordinates"][0]["before"] is None
    silent = replace(small_model(), name="silent")
    monkeypatch.setattr(type(silent.surrogate), "outcome_draws", lambda *_: None)
    assert densities(silent, case, {"m": 1.0}, before=True) is None
