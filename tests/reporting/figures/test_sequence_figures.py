from dataclasses import replace

import pytest

from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.figures import sequence_figures
from rehearsal_torch.reporting.figures.sequence_figures import (
    chosen,
    draw_courses,
    draw_improvements,
    draw_true_improvements,
)
from rehearsal_torch.reporting.labels import Dose, Wording
from reproduction.sepsis.documents import errors
from tests.conftest import decision
from tests.toys.drawn import texts


def test_several_groups_share_their_bins_and_empty_ones_are_left_out():
    with drawing():
        figure = draw_improvements({"one": [0.0, 0.12], "two": [0.24, 0.24, 0.06], "none": []})
    (axes,) = figure.axes
    assert [line.get_label().partition(":")[0] for line in axes.lines] == ["one", "two"]
    left, right = (patch.get_xy()[:, 0] for patch in axes.patches)
    assert left.min() == right.min() == pytest.approx(0.0)
    assert left.max() == right.max() == pytest.approx(24.0)
    assert [patch.get_xy()[:, 1].max() for patch in axes.patches] == [1.0, 2.0]


def test_points_are_percentages_with_their_means_beside_the_line_of_equality():
    with drawing():
        figure = draw_true_improvements({"k = 1": ([0.02, 0.04], [0.01, 0.0]), "k = 3": ([0.1], [0.08])})
    (axes,) = figure.axes
    one, three, equal, zero = axes.lines
    assert one.get_xdata() == pytest.approx([2.0, 4.0])
    assert one.get_ydata() == pytest.approx([1.0, 0.0])
    assert one.get_label() == "k = 1: mean predicted 3.0%, true 0.5%"
    assert three.get_label() == "k = 3: mean predicted 10.0%, true 8.0%"
    assert equal.get_label() == "prediction = truth"
    assert list(equal.get_xdata()) == list(equal.get_ydata())
    assert list(zero.get_ydata()) == [0, 0]
    assert axes.get_xlabel() == "Improvement predicted by the model (%)"
    assert axes.get_ylabel() == "True improvement (%)"


def test_truth_errors_are_shares_of_the_error_without_abduction(tmp_path):
    rows = [
        {
            "k": "3",
            "episode": str(e),
            "sequence": "recommended",
            "quantity": "rmse",
            "feature": feature,
            "estimator": estimator,
            "value": str(value),
        }
        for e in range(2)
        for feature in ("SOFA", "GCS")
        for estimator, value in (("learnt", 1.0 + e), ("observed trajectory", 3.0), ("fresh noise", 6.0))
    ]
    with drawing():
        figure = sequence_figures.draw_errors(rows)
        shown = texts(save(figure, tmp_path, "truth")[1])
    learnt, unchanged, reference = figure.axes[0].get_lines()
    assert learnt.get_xdata() == pytest.approx([25.0, 25.0])
    assert unchanged.get_xdata() == pytest.approx([50.0, 50.0])
    assert list(reference.get_xdata()) == [100, 100]
    assert "Under the recommended actions" in shown
    assert "predicted by the model" in shown
    table = errors(rows)
    assert any(line.startswith("| recommended | rmse | SOFA | learnt | 1.5 [") for line in table)


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


def test_the_range_of_the_models_is_drawn_where_there_are_several():
    one = decision(0)
    one["trajectory"] |= {"rewards_lower": [-14.0] * 4, "rewards_upper": [-11.0] * 4}
    with drawing():
        figure = draw_courses([("largest", one), ("smallest", decision(1))], 2, WORDS)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "range of the models' predictions" in labels
    assert "changed action" in labels


def test_time_is_that_of_the_table_where_it_is_known():
    one = decision(0)
    one["trajectory"] |= {"observed_doses": [[0.5], [0.0]], "doses": [[0.5], [1.0]]}
    with drawing():
        outcome, dose = draw_courses([("largest", one)], 1, replace(WORDS, step="one week", first=1)).axes
    assert list(outcome.lines[0].get_xdata()) == [1, 2, 3, 4]
    assert list(dose.lines[0].get_xdata()) == [1, 2]
    assert [patch.get_x() for patch in dose.patches] == pytest.approx([1.65])
    assert dose.get_xlabel() == "Week"
