"""Differences of alterations of different variables: joint draws, and a bound without them."""

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.objectives.set_difference import CONSERVATIVE, JOINT, between_sets
from rehearsal_torch.verbs.what_if import objectives_in
from tests.verbs.test_rehearse import CASES, SMALL, TASK
from tests.verbs.test_rehearsed import frame  # noqa: F401  the fixture

TWO = TASK | {"box": {"A2": [0, 1], "U1": [0, 1]}}
FIRST, SECOND = (torch.tensor([[value]], dtype=torch.float64) for value in (0.3, 0.5))


def objectives(rows, method, **settings):
    model = rt.learn(rows, TWO, method=method, **settings)
    made = objectives_in(model, [model._one(CASES[0])])
    return {each.names: each for each in made.whole}


def test_within_one_set_joint_draws_give_its_own_contrast(frame):  # noqa: F811
    one = objectives(frame, "care")["A2",]
    found, basis = between_sets(one, FIRST, one, SECOND)
    assert basis == JOINT
    assert found == one.contrast(FIRST, SECOND)[0]


def test_without_joint_draws_both_claims_hold_at_half_the_risk(frame):  # noqa: F811
    sets = objectives(frame, "cme_stack", **SMALL)
    one, other = sets["A2",], sets["U1",]
    found, basis = between_sets(one, FIRST, other, SECOND)
    assert basis == CONSERVATIVE
    wide = [each.at_level(0.975).appraise(at)[0].estimate for each, at in ((one, FIRST), (other, SECOND))]
    ends = wide[0].lower - wide[1].upper, wide[0].upper - wide[1].lower
    assert (found.lower, found.upper) == pytest.approx((max(ends[0], -1), min(ends[1], 1)), abs=1e-6)
    assert found.level == 0.95


def test_methods_without_intervals_have_no_difference(frame):  # noqa: F811
    sets = objectives(frame, "qwz23_success")
    assert between_sets(sets["A2",], FIRST, sets["U1",], SECOND) is None
