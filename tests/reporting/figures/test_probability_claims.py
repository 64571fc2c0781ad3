import math

import pytest

from rehearsal_torch.reporting.figures.probability_claims import draw
from rehearsal_torch.reporting.style import drawing


def row(estimate, auf, lower=math.nan, upper=math.nan):
    return {"estimate": estimate, "auf": auf, "lower": lower, "upper": upper}


def test_claims_stand_beside_truths_and_intervals_that_hold_are_counted():
    rows = [row(0.6, 0.5, 0.4, 0.7), row(0.8, 0.9, 0.7, 0.85), row(0.7, math.nan), row(0.4, 0.4)]
    with drawing():
        (axes,) = draw({"m": rows}).axes
    points, equal = axes.lines
    assert points.get_xdata() == pytest.approx([0.6, 0.8, 0.4])
    assert points.get_ydata() == pytest.approx([0.5, 0.9, 0.4])
    assert equal.get_label() == "estimate = truth"
    (bars,) = axes.collections
    assert [segment.tolist() for segment in bars.get_segments()] == [
        [[0.4, 0.5], [0.7, 0.5]],
        [[0.7, 0.9], [0.85, 0.9]],
    ]
    assert axes.get_title() == "m\nestimated 0.600, true 0.600\ninterval holds for 50%"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Estimated probability", "True probability")


def test_a_method_without_claims_says_so_and_places_without_a_method_are_hidden():
    with drawing():
        axes = draw({name: [row(math.nan, 0.5)] for name in "abcd"}).axes
    assert [each.get_visible() for each in axes] == [True] * 4 + [False] * 2
    assert axes[0].get_title() == "a\nno estimates"


def test_both_intervals_are_drawn_and_counted_apart():
    ends = {"truth_lower": 0.3, "truth_upper": 0.8}
    rows = [row(0.6, 0.5, 0.55, 0.7) | ends, row(0.8, 0.9, 0.7, 0.95) | ends]
    with drawing():
        (axes,) = draw({"m": rows}).axes
    narrow, wide = axes.collections
    assert narrow.get_linewidths()[0] > wide.get_linewidths()[0]
    assert [segment[:, 0].tolist() for segment in wide.get_segments()] == [[0.3, 0.8]] * 2
    assert axes.get_title().splitlines()[2:] == [
        "truth inside the interval of the posterior mean 50%,",
        "of the truth 50%",
    ]
