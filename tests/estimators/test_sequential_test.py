import numpy as np
import pytest

from rehearsal_torch.estimators.sequential_test import ClaimWatch


def watched(claims, successes, p_values=None):
    watch = ClaimWatch(len(claims))
    for place, (claim, success) in enumerate(zip(claims, successes, strict=True)):
        watch.see(claim, bool(success), None if p_values is None else p_values[place])
        if watch.begin is not None:
            return watch
    return watch


def test_right_claims_are_contradicted_in_at_most_one_of_a_hundred_runs():
    stream, alarms = np.random.default_rng(0), 0
    for _ in range(300):
        claims = stream.uniform(0.05, 0.98, 60)
        alarms += watched(claims, stream.random(60) < claims, stream.random(60)).begin is not None
    assert alarms <= 7


@pytest.mark.parametrize("true", [0.13, 0.5])
def test_claims_that_cease_to_be_right_are_found_and_since_when(true):
    stream = np.random.default_rng(1)
    for _ in range(20):
        chance = np.r_[np.full(50, 0.92), np.full(50, true)]
        watch = watched(np.full(100, 0.92), stream.random(100) < chance)
        assert watch.begin is not None
        assert watch.begin < len(watch.claimed) <= (65 if true < 0.2 else 100)
        assert true > 0.2 or watch.begin >= 40


def test_two_outcomes_far_from_what_was_claimed_are_enough_and_one_is_not():
    p_values = np.r_[np.full(10, 0.5), 0.0, 0.0]
    watch = watched(np.full(12, 0.5), np.arange(12) % 2, p_values)
    assert (watch.begin, len(watch.claimed)) == (10, 12)
    assert watched(np.full(11, 0.5), np.arange(11) % 2, p_values[:11]).begin is None
