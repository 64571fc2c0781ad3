"""Courses of a few units: which are chosen, what is said of them, what was done and what should have been."""

from dataclasses import replace

import pytest

from rehearsal_torch.reporting.figures.courses import changed, chosen, draw
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.reporting.wording import Dose, Wording
from tests.conftest import decision

WORDS = Wording(
    "SOFA",
    -1.0,
    "points",
    "4 h",
    (Dose("V", "vasopressor", "mcg"), Dose("S", "service", "", ("none", "major"))),
)


def of(*improvements):
    return [{"identity": str(each), "trajectory": {"improvement": each}} for each in improvements]


@pytest.mark.parametrize(
    ("improvements", "picked"),
    [
        ((0.3, 0.1, 0.5, 0.2, 0.4), [("largest", "0.5"), ("median", "0.3"), ("smallest", "0.1")]),
        ((0.1, 0.4, 0.2, 0.3), [("largest", "0.4"), ("median", "0.2"), ("smallest", "0.1")]),
        ((0.1, 0.4), [("largest", "0.4"), ("smallest", "0.1")]),
        ((0.1,), [("largest", "0.1")]),
    ],
)
def test_the_best_the_median_and_the_worst_are_chosen(improvements, picked):
    assert [(why, one["identity"]) for why, one in chosen(of(*improvements))] == picked


def test_the_first_of_ties_is_taken():
    tied = [{"identity": name, "trajectory": {"improvement": 0.5}} for name in "abc"]
    assert [one["identity"] for _, one in chosen(tied)] == ["a", "b", "c"]


def test_a_column_holds_the_outcome_and_what_was_done_of_one_unit():
    one = decision(0)
    one["trajectory"] |= {"observed_doses": [[0.5, 0.0], [0.0, 1.0]], "doses": [[0.5, 0.0], [0.0, 0.0]]}
    with drawing():
        outcome, vasopressor, service = draw([("largest", one)], 7, WORDS).axes
    observed, predicted = outcome.lines
    assert list(observed.get_ydata()) == [12.5] * 4
    assert list(predicted.get_ydata()) == pytest.approx([12.5 * 0.98] * 4)
    assert [list(line.get_ydata()) for line in service.lines] == [[0.0, 1.0], [0.0, 0.0]]
    assert [label.get_text() for label in service.get_yticklabels()] == ["none", "major"]
    assert vasopressor.get_ylabel() == "vasopressor\n(mcg)"
    assert (
        outcome.get_title() == "Episode stay-0: 2.0% better by the model\n(largest improvement of 7 episodes)"
    )
    assert changed(one) == [1]
    assert [patch.get_x() for patch in service.patches] == pytest.approx([0.65]), "the changed step is shaded"


def test_the_range_of_the_models_is_drawn_where_there_are_several():
    one = decision(0)
    one["trajectory"] |= {"rewards_lower": [-14.0] * 4, "rewards_upper": [-11.0] * 4}
    with drawing():
        figure = draw([("largest", one), ("smallest", decision(1))], 2, WORDS)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "range of the models' predictions" in labels
    assert "changed action" in labels


def test_time_is_that_of_the_table_where_it_is_known():
    one = decision(0)
    one["trajectory"] |= {"observed_doses": [[0.5], [0.0]], "doses": [[0.5], [1.0]]}
    with drawing():
        outcome, dose = draw([("largest", one)], 1, replace(WORDS, step="one week", first=1)).axes
    assert list(outcome.lines[0].get_xdata()) == [1, 2, 3, 4]
    assert list(dose.lines[0].get_xdata()) == [1, 2]
    assert [patch.get_x() for patch in dose.patches] == pytest.approx([1.65])
    assert dose.get_xlabel() == "Week"
