"""Curves are claims point by point, bins hide single rows, and densities integrate to one."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.api.rehearsal_request import NewCases
from rehearsal_torch.api.what_if import what_if
from rehearsal_torch.explorer.charts import densities
from tests.toys.explored import small_model


@pytest.fixture(scope="module")
def case():
    return NewCases(small_model().task, torch.tensor([[0.1]], dtype=torch.float64), ["1"]).case(0)


def test_outcomes_stand_beside_the_region(case):
    found = densities(small_model(), case, {"m": 1.0}, before=True)
    (one,) = found["coordinates"]
    region = small_model().task.region
    assert one["label"] == "y"
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
