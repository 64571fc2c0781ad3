import pytest

from rehearsal_torch.reporting.style import drawing
from reproduction.calibration.coverage import draw


def test_a_line_per_method_runs_through_its_levels():
    with drawing():
        (axes,) = draw({"a": {95: 0.9, 50: 0.4}, "b": {50: 0.5, 95: 1.0}}).axes
    first, second, equal = axes.lines
    assert first.get_xdata() == pytest.approx([50, 95])
    assert first.get_ydata() == pytest.approx([40, 90])
    assert second.get_ydata() == pytest.approx([50, 100])
    assert [each.get_label() for each in axes.lines] == ["a", "b", "as stated"]
    assert equal.get_xdata() == pytest.approx(equal.get_ydata())
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "Nominal coverage (%)",
        "Intervals that hold the truth (%)",
    )
