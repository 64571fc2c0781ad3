import math

import pytest
import torch

from rehearsal_torch.objectives.trials.reward_frame import RewardFrame


def of(*rewards):
    return RewardFrame.of(torch.tensor(rewards, dtype=torch.float64))


@pytest.mark.parametrize("rewards", [(0.0, 1.0, 5.0), (), (math.nan,), (0.5, 0.5), (-3.0, 900.0)])
def test_rewards_of_the_order_of_one_are_seen_as_they_are(rewards):
    assert of(*rewards) == RewardFrame(0.0, 1.0)


@pytest.mark.parametrize(
    ("rewards", "unit"),
    [
        ((0.0, 1e-6, 3e-6), 1e-6),
        ((0.0, 2e7, 5e7), 1e8),
        ((0.0, 1e-3), 1e-3),
        ((0.0, 1e-2), 1.0),
        ((0.0, 1e6), 1.0),
        ((0.0, 2e6), 1e6),
    ],
)
def test_other_units_are_the_power_of_ten_next_to_the_range(rewards, unit):
    assert of(*rewards) == RewardFrame(0.0, unit)


def test_far_from_zero_the_median_becomes_zero():
    assert of(1e7, 1e7 + 1, 1e7 + 2) == RewardFrame(1e7 + 1, 1.0)
    assert of(5000.0, 5000.0) == RewardFrame(5000.0, 1.0)
    assert of(500.0, 500.0) == RewardFrame()
    assert of(-1001.0, -1001.0) == RewardFrame(-1001.0, 1.0)
    assert of(1000.0, 1000.0) == RewardFrame(), "a thousand is not beyond a thousand"
    assert of(999.5, 1000.0, 1000.5) == RewardFrame(), "nor is it of ranges"
    assert of(-2.003, -2.002, -2.001) == RewardFrame(-2.002, 1e-3)


def test_what_is_not_finite_is_left_out():
    assert of(1e7, math.inf, 1e7 + 2, math.nan, 1e7 + 1) == RewardFrame(1e7 + 1, 1.0)


def test_a_range_beyond_all_numbers_is_no_unit():
    assert of(-1.7e308, 0.0, 1.7e308) == RewardFrame()


def test_units_is_the_inverse_of_seen():
    frame = RewardFrame(10.0, 100.0)
    assert frame.standardised(torch.tensor([10.0, 210.0])).tolist() == [0.0, 2.0]
    assert frame.units(2.0) == 210.0
