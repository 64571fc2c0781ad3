"""All cases together: means of draws that cases have in common, against numbers by hand."""

import pytest
import torch

from rehearsal_torch.data.estimate import DIFFERENCE, Estimate
from rehearsal_torch.data.mean_gain import (
    TOLD_BEYOND,
    WIDER,
    Answer,
    GainDraws,
    central,
    counted_beyond,
    overall,
)

DRAWS = torch.linspace(0.0, 0.2, 101, dtype=torch.float64)


def draws(gain=DRAWS, lost=0.0, beyond=0.0, **rest):
    return GainDraws(gain, gain - lost, beyond, **rest)


def answer(own, names=("a",), **rest):
    return Answer("do", names, 0.5, draws=own, **rest)


def test_an_interval_has_the_variance_between_fits_twice():
    fits = torch.tensor([[0.1, 0.1], [0.3, 0.3]], dtype=torch.float64)
    lower, upper = central(fits.flatten(), 2, 0.95)
    within, between = 0.1, 0.02
    half = WIDER * (within**2 + 1.959964**2 * between).__pow__(0.5)
    assert (float(lower), float(upper)) == pytest.approx((0.2 - half, 0.2 + half), abs=1e-6)


def test_what_is_common_to_cases_does_not_cancel_and_the_rest_does():
    one = overall([answer(draws())])
    same = overall([answer(draws())] * 4)
    turned = overall([answer(draws()), answer(draws(DRAWS.flip(0)))])
    assert same.gain == one.gain
    assert turned.gain.upper == pytest.approx(turned.gain.lower) == pytest.approx(0.1)
    assert (same.before, same.after, same.cases, same.counts["do"]) == (0.5, pytest.approx(0.6), 4, 4)


def test_a_case_that_is_left_counts_as_zero():
    whole = overall([answer(draws()), Answer("leave", before=0.1)])
    assert whole.gain.point == pytest.approx(0.05)
    assert whole.before == pytest.approx(0.3)
    assert whole.counts == {"do": 1, "may": 0, "leave": 1}


def test_the_hull_is_said_once_the_mean_share_without_rows_counts():
    far = draws(lost=0.3, beyond=0.4)
    few = overall([answer(far), *[answer(draws())] * 9])
    many = overall([answer(far), answer(draws())])
    assert few.beyond == pytest.approx(0.04)
    assert few.gain.lower == pytest.approx(overall([answer(draws())]).gain.lower)
    assert many.gain.lower == pytest.approx(overall([answer(draws())]).gain.lower - 0.15, abs=1e-6)
    assert many.gain.upper == pytest.approx(overall([answer(draws())]).gain.upper - 0.15 + 0.2, abs=1e-6)


def test_the_hull_is_of_the_worst_case_alone():
    """It once held the model's interval too, which single cases do not say."""
    known = GainDraws(DRAWS, torch.zeros_like(DRAWS) + DRAWS.mean(), 0.1).estimate()
    assert (known.lower, known.upper) == pytest.approx((known.point, known.point + 0.1), abs=2e-6)


def test_distances_to_the_ends_add_up_over_sets_of_variables():
    one, other = answer(draws()), answer(draws(DRAWS.flip(0)), ("b",))
    assert overall([one, other]).gain == overall([one]).gain


def test_there_is_no_answer_without_draws_or_without_an_alteration():
    assert overall([Answer("leave", before=0.5)]) is None
    assert overall([answer(draws()), answer(None)]) is None
    assert overall([answer(draws()), Answer("leave")]) is None


def test_what_is_doubted_is_at_most_may():
    high = draws(DRAWS + 0.5)
    assert overall([answer(high)]).status == "do"
    assert overall([answer(high, doubted=True)]).status == "may"
    assert overall([answer(draws(DRAWS - 0.1))]).status == "may"


def test_other_estimates_of_a_gain_move_its_draws():
    claimed = Estimate(0.05, DIFFERENCE, -0.05, 0.15, 0.9)
    moved = draws(lost=0.1).told(claimed)
    assert moved.untouched
    assert moved.gain.mean().item() == pytest.approx(0.05)
    lower, upper = central(moved.gain, 1, 0.95)
    assert float(upper - lower) == pytest.approx(0.2)


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_draws_are_read_as_they_were_written(lost):
    own = draws(lost=lost, beyond=0.1, fits=1, level=0.9)
    read = GainDraws.of(own.to_dict())
    assert ("lowest" in own.to_dict()) == bool(lost)
    assert torch.allclose(read.gain, own.gain, atol=5e-6)
    assert torch.allclose(read.lowest, own.lowest, atol=5e-6)
    assert (read.beyond, read.level, read.untouched) == (0.1, 0.9, False)


def test_draws_that_are_moved_keep_what_is_lost_beyond_the_rows():
    """It once shrank with the interval, and the worst case was too good or worse than nothing at all."""
    moved = draws(lost=0.3, beyond=0.4).told(Estimate(0.1, DIFFERENCE, 0.09, 0.11, 0.95))
    assert torch.allclose(moved.gain - moved.lowest, torch.full_like(DRAWS, 0.3))
    known = moved.estimate()
    assert (known.lower, known.upper) == pytest.approx((0.09 - 0.3, 0.11 - 0.3 + 0.4), abs=2e-3)


def test_what_an_interval_counts_beyond_the_rows_is_said_where_it_is_the_hull() -> None:
    assert "of such cases no row is near this action" in counted_beyond({"beyond": 0.12})
    for trace in ({}, {"beyond": TOLD_BEYOND}):
        assert counted_beyond(trace) == ""
