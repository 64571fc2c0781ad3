import pytest

from rehearsal_torch.reporting.figures.claimed_and_true import draw
from rehearsal_torch.reporting.style import drawing


def test_points_are_percentages_with_their_means_beside_the_line_of_equality():
    with drawing():
        figure = draw({"k = 1": ([0.02, 0.04], [0.01, 0.0]), "k = 3": ([0.1], [0.08])})
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
