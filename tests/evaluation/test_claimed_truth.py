"""Claims find the truth that they are about."""

import pytest

from rehearsal_torch.evaluation.claimed_truth import SCORES, counterpart
from rehearsal_torch.objectives.step_score import WITH, WITHOUT

SCORE = {"true_observed": -52.0, "true_organs_observed": -40.0}


@pytest.mark.parametrize(
    ("observed", "name"),
    [(-52.0, "true"), (-40.0 + 1e-9, "true_organs"), (-39.0, None), (None, None), (float("nan"), None)],
)
def test_the_return_without_changes_tells_which_score_is_claimed(observed, name):
    assert counterpart({"observed": observed}, SCORE) == name
    assert name is None or name in SCORES


@pytest.mark.parametrize(("value", "name"), [(-30.0, "true_organs"), (-45.0, "true")])
def test_without_a_vasopressor_the_returns_with_and_without_doses_tell(value, name):
    # Nothing was given, so that both scores begin alike; the decision gives a vasopressor, which scores.
    related = {
        WITHOUT: {"observed": -40.0, "value": -30.0},
        WITH: {"observed": -40.0, "value": -45.0},
    }
    trajectory = {"observed": -40.0, "value": value, "related": related}
    assert counterpart(trajectory, SCORE | {"true_observed": -40.0}) == name


def test_a_claim_about_the_column_is_about_the_score_as_it_is():
    assert counterpart({"observed": -40.0, "value": -39.0}, SCORE | {"true_observed": -40.0}) == "true"


def test_worlds_without_these_scores_have_no_counterpart():
    assert counterpart({"observed": -40.0}, {"regret": 1.0}) is None
