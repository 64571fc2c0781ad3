"""Differences of alterations of different variables: joint draws, and a bound without them."""

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.api.what_if import objectives_in
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.set_difference import CONSERVATIVE, JOINT, between_sets
from tests.api.test_rehearse import CASES, SMALL, TASK
from tests.api.test_rehearsed import frame  # noqa: F401  the fixture

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


@pytest.mark.slow
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


class Drawn(GaussianSuccess):
    """An objective whose draws are written down."""

    def __init__(self, drawn):
        self.drawn, self.level = drawn, 0.95

    def chances(self, values):
        return self.drawn

    def appraise(self, values):
        return [Appraisal(None, None)]


class Apart:
    """An objective of another kind, which has no claim."""

    def appraise(self, values):
        return [Appraisal(None, None)]


def test_joint_draws_need_draws_of_both_in_equal_number():
    draws = torch.tensor([[0.2], [0.4]], dtype=torch.float64)
    found, basis = between_sets(Drawn(draws), FIRST, Drawn(draws - 0.1), SECOND)
    assert (basis, found.point) == (JOINT, pytest.approx(0.1))
    assert (found.lower, found.upper) == pytest.approx((0.1, 0.1))
    for other in (Drawn(None), Drawn(draws[:1]), Apart()):
        assert between_sets(Drawn(draws), FIRST, other, SECOND) is None
        assert between_sets(other, FIRST, Drawn(draws), SECOND) is None


class Claimed:
    """An objective with one claim at any level, or with none at some."""

    def __init__(self, *claims):
        self.claims = claims

    def appraise(self, values):
        return [Appraisal(self.claims[0], None)]

    def at_level(self, level):
        return Claimed(self.claims[1]) if level == pytest.approx(0.975) else None


class FixedLevel(Claimed):
    """An objective with a claim whose level cannot be changed."""

    def at_level(self, level):
        return None


def test_both_claims_need_an_interval_at_half_the_risk():
    known = Claimed(chance(0.5, 0.4, 0.6), chance(0.5, 0.3, 0.7))
    found, basis = between_sets(known, FIRST, known, SECOND)
    assert (found.lower, found.upper, basis) == (pytest.approx(-0.4), pytest.approx(0.4), CONSERVATIVE)
    claim = chance(0.5, 0.4, 0.6)
    for other in (Claimed(None, None), Claimed(chance(0.5), None), Claimed(claim, None), FixedLevel(claim)):
        assert between_sets(known, FIRST, other, SECOND) is None
        assert between_sets(other, FIRST, known, SECOND) is None
    open_end = Claimed(chance(0.5, 0.4, 0.6), chance(0.5))
    assert between_sets(known, FIRST, open_end, SECOND) is None
    assert between_sets(open_end, FIRST, known, SECOND) is None
