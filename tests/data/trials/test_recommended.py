"""The pair that a recommendation has always been, and what it says besides."""

import copy

import pytest

from rehearsal_torch.data.trials.recommended import Recommended

ALONE = Recommended({"a": 0.5, "b": 1.0}, 2.0, 0.25)
BESIDE = Recommended({"a": 0.5}, 2.0, 0.25, {"a": 0.75}, 1.5, 0.875, True)


def test_it_is_a_pair_of_action_and_expected_reward():
    action, expected = ALONE
    assert (action, expected) == ({"a": 0.5, "b": 1.0}, 2.0) == (ALONE.action, ALONE.predicted)
    assert ALONE[0] is ALONE.action
    assert ALONE == ({"a": 0.5, "b": 1.0}, 2.0)


def test_copies_have_all_of_it():
    for made in (copy.copy(BESIDE), copy.deepcopy(BESIDE)):
        assert made == BESIDE
        assert (made.std, made.runner_up, made.runner_up_predicted) == (0.25, {"a": 0.75}, 1.5)
        assert (made.chance, made.tried) == (0.875, True)


def test_a_sentence_says_how_sure_it_is():
    assert str(ALONE) == (
        "a = 0.5, b = 1: expected reward 2 (standard deviation 0.25); no other action within the bounds was "
        "tried"
    )
    assert str(BESIDE) == (
        "a = 0.5 (tried): expected reward 2 (standard deviation 0.25); the best other tried action is a = "
        "0.75 (expected 1.5); the recommended one is better with a probability of 88%"
    )


@pytest.mark.parametrize(("chance", "said"), [(0.9999, "more than 99%"), (1e-6, "less than 1%")])
def test_few_networks_make_nothing_certain(chance, said):
    made = Recommended({"a": 0.5}, 2.0, 0.25, {"a": 0.75}, 1.5, chance)
    assert str(made).endswith(f"; the recommended one is better with a probability of {said}")
