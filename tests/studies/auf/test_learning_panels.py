"""Learning curves, one panel per world."""

import pytest

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS
from rehearsal_torch.evaluation.summaries import summed
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.auf.learning_panels import draw


def summary(probability, oracle=0.9, no_action=0.1):
    values = [0.5, 0.4, 0.6, 1.0]
    row = dict(zip(COLUMNS, ("bank", "cme", 0, "0", probability, oracle, no_action, *values), strict=True))
    return summed([row, {**row, "seed": 1, "auf": probability + 0.02}], 0)


def test_a_curve_has_its_means_and_both_references():
    curves = {"bank": {1000: summary(0.6), 200: summary(0.4)}, "loan": {200: summary(0.5)}}
    with drawing():
        figure = draw(curves)
    bank, loan = figure.axes
    assert (bank.get_title(), loan.get_title()) == ("bank", "loan")
    found = [list(line.get_ydata()) for line in bank.get_lines()]
    assert any(values == pytest.approx([0.41, 0.61]) for values in found)
    assert [0.9, 0.9] in found
    assert [0.1, 0.1] in found
    assert list(bank.get_xticks()) == [200, 1000]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["best possible", "cme", "no action"]


def test_panels_without_a_world_are_hidden():
    with drawing():
        figure = draw({str(world): {200: summary(0.5)} for world in range(4)})
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2
