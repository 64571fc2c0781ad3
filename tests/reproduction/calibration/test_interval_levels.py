"""Intervals of the same decisions at further levels."""

import pytest

from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from reproduction.calibration.interval_levels import TRACE, IntervalLevels
from tests.toys.linear_truth import chain

WORLD = chain()
CASES = WORLD.cases(4)


@pytest.fixture(scope="module")
def model():
    return fit(LinearStructural(WORLD.task, 300), WORLD.table(60))


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
