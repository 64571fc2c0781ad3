import matplotlib.pyplot as plt
import pytest

from rehearsal_torch.reporting.figures.outcomes import diagonal, draw
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.reporting.wording import Wording

DECIDED = [
    {"trajectory": {"observed": -50.0, "value": -40.0}},
    {"trajectory": {"observed": -20.0, "value": -20.0}},
]


@pytest.mark.parametrize(
    ("words", "sign", "side", "label"),
    [
        (Wording("SOFA", -1.0, "points"), -1, "below", "Cumulative SOFA (points)"),
        (Wording(), 1, "above", "Cumulative reward"),
    ],
)
def test_a_point_is_a_patient_in_the_units_of_the_outcome(words, sign, side, label):
    with drawing():
        (axes,) = draw({"A*": DECIDED}, words).axes
    points, unchanged = axes.lines
    assert list(points.get_xdata()) == [sign * -50.0, sign * -20.0]
    assert list(points.get_ydata()) == [sign * -40.0, sign * -20.0]
    assert unchanged.get_label() == "no change"
    assert axes.get_title() == f"Better {side} the line"
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        f"{label}, as observed",
        f"{label},\npredicted under the changes",
    )


def test_the_diagonal_spans_what_both_axes_show():
    with drawing():
        figure, axes = plt.subplots()
        axes.set(xlim=(1, 4), ylim=(-2, 3))
        diagonal(axes, "equal")
    (line,) = axes.lines
    plt.close(figure)
    assert list(line.get_xdata()) == list(line.get_ydata()) == [-2, 4]
