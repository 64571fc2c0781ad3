"""The pair that a recommendation has always been, and what it says besides."""

import copy
import pickle

from rehearsal_torch.data.trials.recommended import Recommended

ALONE = Recommended({"a": 0.5, "b": 1.0}, 2.0, 0.25)
BESIDE = Recommended({"a": 0.5}, 2.0, 0.25, {"a": 0.75}, 1.5, 0.875)


def test_it_is_a_pair_of_action_and_expected_reward():
    action, expected = ALONE
    assert (action, expected) == ({"a": 0.5, "b": 1.0}, 2.0) == (ALONE.action, ALONE.predicted)
    assert ALONE[0] is ALONE.action
    assert ALONE == ({"a": 0.5, "b": 1.0}, 2.0)


def test_copies_have_all_of_it():
    for made in (copy.copy(BESIDE), copy.deepcopy(BESIDE), pickle.loads(pickle.dumps(BESIDE))):
        assert made == BESIDE
        assert (made.std, made.runner_up, made.runner_up_predicted, made.chance) == (
            0.25,
            {"a": 0.75},
            1.5,
            0.875,
        )


def test_a_sentence_says_how_sure_it_is():
    assert str(ALONE) == (
        "a = 0.5, b = 1: expected reward 2 (standard deviation 0.25); no other action was tried"
    )
    assert str(BESIDE).endswith(
        "better than the best tried one, a = 0.75 (expected 1.5), with a probability of 88%"
    )
