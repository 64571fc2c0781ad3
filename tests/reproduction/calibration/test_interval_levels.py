"""Intervals of the same decisions at further levels."""

import math

import pytest
import torch

from rehearsal_torch.claims import CrossFittedClaims
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.candidates import appraisals
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.scenario_success import ScenarioCount
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from reproduction.calibration.interval_levels import FURTHER, TRACE, IntervalLevels, further_intervals
from tests.toys.linear_truth import chain

WORLD = chain()
CASES = WORLD.cases(4)


@pytest.fixture(scope="module")
def model():
    return fit(LinearStructural(WORLD.task, 300), WORLD.table(60))


def counted(surrogate, cases, **settings):
    scenarios = {"search_scenarios": 50, "validation_scenarios": 50, "test_scenarios": 200}
    return ScenarioCount.for_cases(surrogate, cases, **scenarios, **settings)


def decided(model, objective=GaussianSuccess, search=None):
    return (search or ProjectionNewton()).batch_search(objective.for_cases(model, CASES))


@pytest.mark.parametrize(
    ("objective", "search"), [(GaussianSuccess, None), (ChanceCost, CheapestAlteration())]
)
def test_decisions_stay_and_their_intervals_are_nested(model, objective, search):
    decisions = decided(model, objective, search)
    found = IntervalLevels(model, objective, (0.5, 0.8))(CASES, decisions)
    pairs = [each for each in zip(decisions, found, strict=True) if each[0].alteration is not None]
    assert pairs
    for before, after in pairs:
        intervals = after.trace[TRACE]
        assert list(intervals) == ["0.5", "0.8"]
        (low, high), (lower, upper) = intervals.values()
        assert before.estimate.lower < lower < low < high < upper < before.estimate.upper
        whole = after.to_dict()
        del whole["trace"][TRACE]
        assert whole == before.to_dict()


def test_quantiles_of_draws_have_levels_too(model):
    chosen = decided(model)
    # The estimate of another objective is not that of this one: the decisions carry its own.
    decisions = [
        Decision(each.alteration, 0.0, estimate=appraised.estimate)
        for each, appraised in zip(chosen, appraisals(counted(model, CASES).sets, chosen), strict=True)
    ]
    found = IntervalLevels(model, counted, (0.5,))(CASES, decisions)
    for each, before in zip(found, decisions, strict=True):
        ((low, high),) = each.trace[TRACE].values()
        assert before.estimate.lower <= low <= high <= before.estimate.upper
    with pytest.raises(ValueError, match="expected the estimate of the decision"):
        IntervalLevels(model, GaussianSuccess, (0.5,))(CASES, decisions)
    with pytest.raises(ValueError, match=r"expected a level in \(0, 1\); got 1"):
        counted(model, CASES, level=1.0)


def test_without_an_alteration_or_an_interval_nothing_is_added(model):
    none = Decision(None, 0.0, status="no_action")
    found = IntervalLevels(model, GaussianSuccess, (0.5,))(CASES[:1], [none])
    assert found == [none]
    found = IntervalLevels(model, lambda surrogate, cases: "else", (0.5,))(CASES[:1], [none])
    assert found == [none]


def test_cross_fitted_claims_have_their_own_intervals(model):
    other = fit(LinearStructural(WORLD.task, 300), WORLD.table(60, 1))
    claims = CrossFittedClaims(
        [model, other], [other, model], GaussianSuccess, torch.tensor([0.1, 0.2], dtype=torch.float64)
    )
    decisions = [*decided(model)[:3], Decision(None, 0.0, status="no_action")]
    claimed = claims(CASES, decisions)
    found = IntervalLevels(model, GaussianSuccess, (0.5, 0.95), claims)(CASES, decisions)
    for before, after in zip(claimed[:3], found[:3], strict=True):
        (low, high), ends = after.trace[TRACE].values()
        assert ends == [before.estimate.lower, before.estimate.upper]
        assert ends[0] <= low <= after.estimate.point <= high <= ends[1]
        assert after.estimate == before.estimate
    assert TRACE not in found[3].trace


def test_intervals_at_further_levels_have_columns_of_their_own():
    decided = {"alteration": {"a": 1.0}, "trace": {"intervals": {"0.5": [0.75, 0.85]}}}
    found = further_intervals(decided)
    assert tuple(found) == FURTHER
    assert (found["lower50"], found["upper50"]) == (0.75, 0.85)
    assert math.isnan(found["lower80"])
    assert all(math.isnan(each) for each in further_intervals(decided | {"alteration": None}).values())
