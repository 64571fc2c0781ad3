"""Claims find the truth that they are about."""

import pytest

from rehearsal_torch.evaluation.claimed_truth import SCORES, counterpart

SCORE = {"true_observed": -52.0, "true_organs_observed": -40.0}


@pytest.mark.parametrize(
    ("observed", "name"),
    [(-52.0, "true"), (-40.0 + 1e-9, "true_organs"), (-39.0, None), (None, None), (float("nan"), None)],
)
def test_the_return_without_changes_tells_which_score_is_claimed(observed, name):
    assert counterpart(observed, SCORE) == name
    assert name is None or name in SCORES


def test_a_stay_with_equal_scores_is_compared_with_the_first():
    assert counterpart(-40.0, SCORE | {"true_observed": -40.0}) == "true"


def test_worlds_without_these_scores_have_no_counterpart():
    assert counterpart(-40.0, {"regret": 1.0}) is None
