"""Net values follow from probabilities: point and interval, scaled and shifted."""

import pytest

from rehearsal_torch.data.estimate import (
    CHANCE,
    DIFFERENCE,
    Estimate,
    Intervals,
    alike,
    beside,
    chance_of,
    decimals,
    in_words,
    is_chance,
    percent,
    percents,
    points,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0 %"),
        (1e-9, "under 1 %"),
        (0.004, "under 1 %"),
        (0.006, "1 %"),
        (0.618, "62 %"),
        (0.994, "99 %"),
        (0.996, "over 99 %"),
        (1 - 1e-9, "over 99 %"),
        (1.0, "100 %"),
    ],
)
def test_nothing_is_called_certain_that_is_not(value, said):
    assert percent(value) == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        # Whole numbers are enough where they differ, and in the middle where an end is near the point.
        ((0.618, 0.509, 0.72), ["62 %", "51 %", "72 %"]),
        ((0.62, 0.618, 0.72), ["62 %", "62 %", "72 %"]),
        ((0.0, 0.0, 0.3), ["0 %", "0 %", "30 %"]),
        # Near the ends a decimal tells them apart, but only where it is needed.
        ((0.94, 0.88, 0.97), ["94 %", "88 %", "97 %"]),
        ((0.94, 0.88, 0.944), ["94.0 %", "88 %", "94.4 %"]),
        ((0.003, 0.001, 0.02), ["0.3 %", "0.1 %", "2.0 %"]),
        ((0.9996, 0.998, 1.0), ["over 99.9 %", "99.8 %", "100.0 %"]),
        # An interval is not said to have no width.
        ((0.622, 0.618, 0.624), ["62.2 %", "61.8 %", "62.4 %"]),
        ((0.622, 0.618), ["62.2 %", "61.8 %"]),
        # 10 % and 90 % themselves belong to the middle.
        ((0.1, 0.05, 0.101), ["10 %", "5 %", "10 %"]),
        ((0.9, 0.897, 0.95), ["90 %", "90 %", "95 %"]),
        ((0.1, 0.096, 0.3), ["10 %", "9.6 %", "30 %"]),
        ((0.9, 0.3, 0.904), ["90 %", "30 %", "90.4 %"]),
    ],
)
def test_a_decimal_is_taken_where_whole_numbers_hide_a_difference(values, said):
    assert percents(values) == said


def test_two_chances_are_told_apart():
    assert alike(0.618, 0.622)
    assert not alike(0.618, 0.618)
    assert not alike(0.618, 0.63)
    assert beside(0.3, 0.3) == "30 % against 30 %"
    assert beside(0.618, 0.622) == "61.8 % against 62.2 %"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.409, 0.273, 0.539), ["41", "27", "54"]),
        ((0.2, -0.05, 0.45), ["20", "-5", "45"]),
        ((0.0,), ["0"]),
        # The sign of an end is not lost.
        ((0.2, 0.003, 0.4), ["20.0", "0.3", "40.0"]),
        ((0.2, -0.0004, 0.4), ["20.00", "-0.04", "40.00"]),
        ((0.101, 0.1, 0.102), ["10.1", "10.0", "10.2"]),
        # Nothing is lost where only some of the numbers are equal.
        ((0.2, 0.2, 0.45), ["20", "20", "45"]),
        # Nothing has no sign.
        ((-0.0,), ["0"]),
        ((-0.00001, 0.2), ["0.00", "20.00"]),
    ],
)
def test_differences_keep_their_signs_and_their_width(values, said):
    assert points(values) == said


@pytest.mark.parametrize(
    ("before", "after", "gain", "said"),
    [
        # Whole numbers are enough, or hide that the two differ.
        ((0.31,), (0.62,), (0.31,), "31 % to 62 %: 31"),
        ((0.618,), (0.622,), (0.004,), "61.8 % to 62.2 %: 0.4"),
        # 88 - 86 is not 1, nor is 9.2 - 8.6, whose decimal tells an end of the interval apart.
        ((0.8643, 0.7, 0.95), (0.8759, 0.72, 0.96), (0.0116, -0.03, 0.05), "86.4 % to 87.6 %: 1.2"),
        ((0.086, 0.0861, 0.14), (0.092, 0.05, 0.15), (0.006, -0.02, 0.03), "8.6 % to 9.2 %: 0.6"),
        # An end of the difference that needs a decimal, and tenths that are not enough.
        ((0.504,), (0.621,), (0.117, -0.004, 0.3), "50.4 % to 62.1 %: 11.7"),
        ((0.86449,), (0.87551,), (0.01102,), "86.45 % to 87.55 %: 1.10"),
        # A difference of other numbers, which no digits make agree, and none that is said.
        ((0.3,), (0.62,), (0.2,), "30 % to 62 %: 20"),
        ((0.3,), (0.62,), (), "30 % to 62 %: "),
    ],
)
def test_a_difference_is_that_of_the_numbers_beside_it(before, after, gain, said):
    fine = decimals(before, after, gain)
    less, more = (percents(each, fine)[0] for each in (before, after))
    assert f"{less} to {more}: {''.join(points(gain, fine)[:1])}" == said


def test_the_level_is_said_once_and_again_where_it_is_another_one():
    told = Intervals()
    assert told.chance(0.21, (0.12, 0.3), 0.95) == "21 % (95% interval 12 % to 30 %)"
    assert told.chance(0.62, (0.51, 0.72), 0.95) == "62 % (51 % to 72 %)"
    assert told.difference(0.41, (0.27, 0.54), 0.9) == "41 percentage points (90% interval 27 to 54)"
    assert told.chance(0.5) == "50 %"
    assert Intervals().difference(0.01) == "1 percentage point"
    assert Intervals().difference(-0.01, (-0.02, 0.0)) == "-1 percentage point (interval -2 to 0)"


def test_only_probabilities_are_in_per_cent():
    assert is_chance(CHANCE)
    assert is_chance(DIFFERENCE)
    assert not is_chance("return of the episode")
    assert chance_of(Estimate(0.8, CHANCE, 0.7, 0.9, 0.9)) == "80 % (90% interval 70 % to 90 %)"
    assert chance_of(Estimate(12.0, "revenue", 11.0, 13.0, 0.9)) == "12 (90% interval 11 to 13)"


def test_the_desired_region_is_named_where_it_is_short():
    assert in_words(CHANCE) == "chance of a desired outcome"
    assert in_words(CHANCE, "repaid is yes") == "chance that repaid is yes"
    assert in_words("revenue", "repaid is yes") == "revenue"
